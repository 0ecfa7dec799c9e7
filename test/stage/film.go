package stage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Moment is an object as it was written once, and when that was seen.
type Moment struct {
	At     time.Time
	Object Object
}

// Phase is the phase of the upgrade at that moment, empty when none was active.
func (m Moment) Phase() string { return m.Object.Record().UpgradePhase }

// Film is everything that was written to one object since it was started.
type Film struct {
	mu      sync.Mutex
	moments []Moment
	show    func(Moment)
	news    chan struct{}
}

// Follow films an object until ctx ends, and hands each moment to show, if that is given.
func (s *Stage) Follow(ctx context.Context, key client.ObjectKey, show func(Moment)) (*Film, error) {
	f := &Film{show: show, news: make(chan struct{}, 1)}
	version, err := f.begin(ctx, s, key)
	if err != nil {
		return nil, err
	}
	go func() {
		for ctx.Err() == nil {
			f.watch(ctx, s, key, version)
			if ctx.Err() != nil {
				return
			}
			// The API server ends a watch every now and then. What was written in between is not lost: it is compared
			// with the last moment.
			if again, err := f.begin(ctx, s, key); err == nil {
				version = again
			}
			time.Sleep(oneGlance)
		}
	}()
	return f, nil
}

func (f *Film) begin(ctx context.Context, s *Stage, key client.ObjectKey) (version string, err error) {
	list := s.kind.list()
	if err := s.Client.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return "", fmt.Errorf("follow %s %s: %w", s.kind.Name, key, err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(Object); ok && object.GetName() == key.Name {
			f.add(object)
		}
		return nil
	})
	return list.GetResourceVersion(), err
}

func (f *Film) watch(ctx context.Context, s *Stage, key client.ObjectKey, version string) {
	changes, err := s.Client.Watch(ctx, s.kind.list(), client.InNamespace(key.Namespace),
		&client.ListOptions{Raw: listFrom(version)})
	if err != nil {
		return
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if object, ok := change.Object.(Object); ok && object.GetName() == key.Name && change.Type != watch.Deleted {
			f.add(object)
		}
	}
}

func (f *Film) add(object Object) {
	m := Moment{At: time.Now(), Object: object}
	f.mu.Lock()
	if last := len(f.moments) - 1; last >= 0 && f.moments[last].Object.GetResourceVersion() == object.GetResourceVersion() {
		f.mu.Unlock()
		return
	}
	f.moments = append(f.moments, m)
	f.mu.Unlock()
	if f.show != nil {
		f.show(m)
	}
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// Moments is the film so far.
func (f *Film) Moments() []Moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Moment(nil), f.moments...)
}

// Until waits for a moment as wanted, one that is on the film already included, and returns the first.
func (f *Film) Until(ctx context.Context, what string, patience time.Duration, wanted func(Object) bool) (Moment, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for seen := 0; ; {
		moments := f.Moments()
		for _, m := range moments[seen:] {
			if wanted(m.Object) {
				return m, nil
			}
		}
		seen = len(moments)
		select {
		case <-ctx.Done():
			said := "nothing was written to it"
			if seen > 0 {
				said = Words(moments[seen-1].Object)
			}
			return Moment{}, fmt.Errorf("wait for %s: not within %s; last seen: %s", what, patience, said)
		case <-f.news:
		case <-time.After(oneGlance):
		}
	}
}

// Span is a phase and how long it lasted.
type Span struct {
	Phase string
	Began time.Time
	Took  time.Duration
}

// Spans lists the phases of the film in order. The last one is left out while it lasts.
func (f *Film) Spans() []Span {
	var spans []Span
	var current Span
	for _, m := range f.Moments() {
		if m.Phase() == current.Phase {
			continue
		}
		if current.Phase != "" {
			current.Took = m.At.Sub(current.Began)
			spans = append(spans, current)
		}
		current = Span{Phase: m.Phase(), Began: m.At}
	}
	return spans
}

func listFrom(version string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: version}
}
