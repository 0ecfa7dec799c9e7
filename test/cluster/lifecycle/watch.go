package lifecycle

import (
	"context"
	"fmt"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

// tooOften is how many restarts of one component mean that it will not come up.
const tooOften = 3

type look func(context.Context) (ok bool, seen string, err error)

// watcher notices that waiting is in vain: the supervisor has ended, or a component ends again and again.
type watcher struct {
	layout node.Layout
	state  node.State
}

func (w watcher) components() ([]node.ComponentState, error) {
	if !w.state.Running() {
		log := w.layout.Log("supervisor")
		return nil, fmt.Errorf("the node ended by itself (log: %s):\n%s", log, node.Tail(log, 10))
	}
	components, err := w.layout.ReadComponents()
	if err != nil {
		return nil, err
	}
	for _, c := range components {
		if c.Restarts >= tooOften {
			log := w.layout.Log(c.Name)
			return nil, fmt.Errorf("%s ended %d times (log: %s):\n%s", c.Name, c.Restarts, log, node.Tail(log, 10))
		}
	}
	return components, nil
}

// running looks whether a component has started, which it does when what it needs is ready.
func (w watcher) running(name string) look {
	return func(context.Context) (bool, string, error) {
		components, err := w.components()
		if err != nil {
			return false, "", err
		}
		var seen []string
		for _, c := range components {
			if c.Name == name && c.State == node.Running {
				return true, "", nil
			}
			seen = append(seen, c.Name+" "+c.State)
		}
		return false, strings.Join(seen, ", "), nil
	}
}

// and looks for more, as long as the node lives.
func (w watcher) and(more look) look {
	return func(ctx context.Context) (bool, string, error) {
		if _, err := w.components(); err != nil {
			return false, "", err
		}
		return more(ctx)
	}
}
