package stage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Call is one request that the API server answered, as its audit log has it.
type Call struct {
	At          time.Time
	User        string
	Agent       string
	Verb        string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	Code        int
}

// What is one word for the kind of call, such as "create jobs" or "update glances/status".
func (c Call) What() string {
	if c.Subresource != "" {
		return c.Verb + " " + c.Resource + "/" + c.Subresource
	}
	return c.Verb + " " + c.Resource
}

var writing = []string{"create", "update", "patch", "delete", "deletecollection"}

// Writes tells whether the call changes something.
func (c Call) Writes() bool { return slices.Contains(writing, c.Verb) }

// Reads tells whether the call asks the API server, past any cache.
func (c Call) Reads() bool { return c.Verb == "get" || c.Verb == "list" }

type auditEvent struct {
	Stage string
	Verb  string
	User  struct{ Username string }

	UserAgent string
	ObjectRef *struct {
		Resource, Subresource, Namespace, Name string
	}
	ResponseStatus           *struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// Mark is a place in the audit log.
type Mark int64

// Mark is the end of the audit log now: calls that are answered from now on come after it.
func (s *Stage) Mark() (Mark, error) {
	info, err := os.Stat(s.layout.AuditLog())
	if err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	return Mark(info.Size()), nil
}

// Calls lists what was answered after a mark.
func (s *Stage) Calls(after Mark) ([]Call, error) {
	file, err := os.Open(s.layout.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(int64(after), io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	calls, err := readCalls(file)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return calls, nil
}

func readCalls(from io.Reader) ([]Call, error) {
	var calls []Call
	lines := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return calls, nil // a line without an end is still being written
		}
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(line, []byte(`"ResponseComplete"`)) {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%w: %.200s", err, line)
		}
		call := Call{At: e.RequestReceivedTimestamp, User: e.User.Username, Agent: e.UserAgent, Verb: e.Verb}
		if e.ObjectRef != nil {
			call.Resource, call.Subresource, call.Namespace, call.Name = e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Namespace, e.ObjectRef.Name
		}
		if e.ResponseStatus != nil {
			call.Code = e.ResponseStatus.Code
		}
		calls = append(calls, call)
	}
}

// ControllerCalls lists the calls that the controller made for what is in a namespace after a mark, watches left out:
// those of its leader election are about its own namespace.
func (s *Stage) ControllerCalls(after Mark, namespace string) ([]Call, error) {
	calls, err := s.Calls(after)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(calls, func(c Call) bool {
		return c.User != ControllerUser || c.Namespace != namespace || !(c.Writes() || c.Reads())
	}), nil
}

// Tally is what one upgrade cost in calls of the controller.
type Tally struct {
	// Core are the writes of the walk itself.
	Status, Jobs, Deployment, Events int
	// Words are status writes that move nothing: they say what is waited for.
	Words int
	// Cleanup are the left-over Jobs of earlier work that were deleted, Sync the Job that follows an upgrade.
	Cleanup, Sync int
	// Other are writes that belong to none of these. Refused are those that the API server did not take, because the
	// object had moved on since it was read: they changed nothing and are no writes.
	Other   []Call
	Refused []Call
	// Reads went past the controller's caches.
	Reads []Call
}

// Core is how many writes the walk itself took.
func (t Tally) Core() int { return t.Status + t.Jobs + t.Deployment + t.Events }

// Total is all writes that changed something.
func (t Tally) Total() int {
	return t.Core() + t.Words + t.Cleanup + t.Sync + len(t.Other)
}

// Count sorts the controller's calls. moves is how many of its status writes moved the upgrade, as filmed.
func Count(calls []Call, moves int) Tally {
	t := Tally{}
	for _, c := range calls {
		switch {
		case c.Reads():
			t.Reads = append(t.Reads, c)
		case c.Code >= 400:
			t.Refused = append(t.Refused, c)
		case c.Verb == "update" && c.Subresource == "status":
			t.Status++
		case c.What() == "create jobs" && strings.HasSuffix(c.Name, "-db-sync"):
			t.Sync++
		case c.What() == "create jobs":
			t.Jobs++
		case c.What() == "delete jobs":
			t.Cleanup++
		case c.What() == "update deployments":
			t.Deployment++
		case c.Resource == "events":
			t.Events++
		default:
			t.Other = append(t.Other, c)
		}
	}
	t.Words = max(0, t.Status-moves)
	t.Status -= t.Words
	return t
}

// Lines says it.
func (t Tally) Lines() []string {
	lines := []string{
		fmt.Sprintf("the walk itself: %d (status %d, Jobs %d, Deployment %d, events %d)", t.Core(), t.Status, t.Jobs, t.Deployment, t.Events),
		fmt.Sprintf("clean-up of earlier Jobs: %d, sync after the upgrade: %d, words on what is waited for: %d", t.Cleanup, t.Sync, t.Words),
	}
	if len(t.Other)+len(t.Refused) > 0 {
		lines = append(lines, fmt.Sprintf("others: %s; not taken by the API server, and repeated: %s", whats(t.Other), whats(t.Refused)))
	}
	return append(lines, fmt.Sprintf("in all: %d writes; reads past the caches: %d (%s)", t.Total(), len(t.Reads), whats(t.Reads)))
}

func whats(calls []Call) string {
	if len(calls) == 0 {
		return "none"
	}
	var all []string
	for _, c := range calls {
		all = append(all, strings.TrimSpace(c.What()+" "+c.Name))
	}
	return strings.Join(all, ", ")
}
