package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// State is what a later command must know of a running cluster.
type State struct {
	Supervisor Process   `json:"supervisor"`
	Init       Process   `json:"init"`
	Bin        string    `json:"bin"`
	Port       int       `json:"port"`
	Since      time.Time `json:"since"`
	Ready      bool      `json:"ready"`
}

// ComponentState is what the keeper says of one component. PID counts in the private process namespace.
type ComponentState struct {
	Name     string    `json:"name"`
	PID      int       `json:"pid"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
}

// ReadState reads what is recorded of the cluster; found is false where nothing is.
func (l Layout) ReadState() (state State, found bool, err error) {
	found, err = readJSON(l.path("state.json"), &state)
	return state, found, err
}

// WriteState records the cluster.
func (l Layout) WriteState(state State) error { return writeJSON(l.path("state.json"), state) }

// ReadComponents reads what the keeper last said; it is empty before the keeper said anything.
func (l Layout) ReadComponents() (components []ComponentState, err error) {
	_, err = readJSON(l.path("components.json"), &components)
	return components, err
}

// Running says whether the cluster is alive as a whole.
func (s State) Running() bool { return s.Supervisor.Alive() && s.Init.Alive() }

func readJSON(path string, into any) (found bool, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the cluster's state: %w", err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return false, fmt.Errorf("read the cluster's state: %s is damaged (%w); end the cluster with down", path, err)
	}
	return true, nil
}

// writeJSON replaces the file in one step, so that a reader never sees half of it.
func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write the cluster's state: %w", err)
	}
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the cluster's state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write the cluster's state: %w", err)
	}
	return nil
}
