package shelf

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// byInstance is the index of pods by namespace/instance.
const byInstance = "instance"

// Shelf is what the informers fill and the controllers read.
type Shelf struct {
	scheme *runtime.Scheme
	// instance and component are the labels that say whose an object is, and what it does.
	instance, component string
	components          []string

	mu      sync.RWMutex
	stores  map[reflect.Type][]toolscache.Indexer
	samples map[string]*sample

	received atomic.Int64
}

// Received is how many objects informers have brought so far.
func (s *Shelf) Received() int64 { return s.received.Load() }

// New makes a shelf for objects that carry these labels. Objects of different components are told apart by their
// samples; other values of the label, which anybody may set, are one.
func New(scheme *runtime.Scheme, instance, component string, components ...string) *Shelf {
	return &Shelf{scheme: scheme, instance: instance, component: component, components: components, stores: map[reflect.Type][]toolscache.Indexer{}, samples: map[string]*sample{}}
}

// Pack is what informers do to an object before they keep it.
func (s *Shelf) Pack(object any) (any, error) {
	s.received.Add(1)
	if _, done := object.(*packed); done {
		return object, nil
	}
	o, ok := object.(client.Object)
	if !ok {
		return object, nil // that of a deletion that was missed: it holds what is packed already
	}
	slim(o)
	text, err := encode(o)
	if err != nil {
		return nil, fmt.Errorf("pack %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	_, binary := object.(protocol)
	component := o.GetLabels()[s.component]
	if !slices.Contains(s.components, component) {
		component = ""
	}
	sample := s.sampleOf(reflect.TypeOf(o).Elem().Name()+" "+component, text, !binary)
	p := &packed{sample: sample, key: o.GetNamespace() + "/" + o.GetName(), version: strings.Clone(o.GetResourceVersion()), body: sample.apart(text)}
	if instance := o.GetLabels()[s.instance]; strings.HasPrefix(p.GetName(), instance) {
		p.instance = p.GetName()[:len(instance)] // the same memory
	} else {
		p.instance = strings.Clone(instance)
	}
	return p, nil
}

// sampleOf makes the first object of a sort the sample for all that follow.
func (s *Shelf) sampleOf(sort string, text []byte, json bool) *sample {
	s.mu.RLock()
	found := s.samples[sort]
	s.mu.RUnlock()
	if found != nil {
		return found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.samples[sort] == nil {
		s.samples[sort] = newSample(text)
		s.samples[sort].json = json
	}
	return s.samples[sort]
}

// slim drops what nobody here reads.
func slim(object client.Object) {
	object.SetManagedFields(nil)
	switch o := object.(type) {
	case *batchv1.Job:
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *corev1.Pod:
		containers := make([]corev1.Container, 0, len(o.Spec.Containers))
		for _, container := range o.Spec.Containers {
			containers = append(containers, corev1.Container{Name: container.Name, Image: container.Image})
		}
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName, Containers: containers}
	}
}

// Informer makes the informer of a kind and remembers where it keeps its objects.
func (s *Shelf) Informer(source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, _ toolscache.Indexers) toolscache.SharedIndexInformer {
	indexers := toolscache.Indexers{}
	if _, ok := object.(*corev1.Pod); ok {
		indexers[byInstance] = func(object any) ([]string, error) {
			p, ok := object.(*packed)
			if !ok {
				return nil, fmt.Errorf("index %T: not packed", object)
			}
			return []string{p.GetNamespace() + "/" + p.instance}, nil
		}
	}
	informer := toolscache.NewSharedIndexInformer(source, object, resync, indexers)
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := reflect.TypeOf(object).Elem()
	s.stores[kind] = append(s.stores[kind], informer.GetIndexer())
	return informer
}

// Reader reads from the shelf.
type Reader struct{ *Shelf }

// Get unpacks one object.
func (r Reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, r.scheme)
	if err != nil {
		return err
	}
	kind := reflect.TypeOf(into).Elem()
	if !r.watches(kind) {
		return fmt.Errorf("get %s %s: nobody watches its kind", gvk.Kind, key)
	}
	p := r.find(kind, key)
	if p == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	reflect.ValueOf(into).Elem().SetZero()
	if err := p.unpack(into); err != nil {
		return err
	}
	into.GetObjectKind().SetGroupVersionKind(gvk)
	return nil
}

func (s *Shelf) watches(kind reflect.Type) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.stores[kind]) > 0
}

// find looks into the store of every namespace that is watched by itself.
func (s *Shelf) find(kind reflect.Type, key client.ObjectKey) *packed {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, store := range s.stores[kind] {
		if object, found, _ := store.GetByKey(key.Namespace + "/" + key.Name); found {
			if p, ok := object.(*packed); ok {
				return p
			}
		}
	}
	return nil
}

// List unpacks the pods of an instance; nothing else is ever listed.
func (r Reader) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	if _, ok := into.(*corev1.PodList); !ok || o.LabelSelector == nil {
		return fmt.Errorf("list %T: only pods are listed, by labels", into)
	}
	instance, known := o.LabelSelector.RequiresExactMatch(r.instance)
	if !known || o.Namespace == "" {
		return fmt.Errorf("list pods by %s: neither namespace nor instance may be left open", o.LabelSelector)
	}
	found := []runtime.Object{}
	for _, p := range r.pods(o.Namespace, instance) {
		pod := &corev1.Pod{}
		if err := p.unpack(pod); err != nil {
			return err
		}
		if o.LabelSelector.Matches(labels.Set(pod.Labels)) {
			found = append(found, pod)
		}
	}
	return meta.SetList(into, found)
}

// pods are those of every object of this name, whatever its kind.
func (s *Shelf) pods(namespace, instance string) (found []*packed) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, store := range s.stores[reflect.TypeFor[corev1.Pod]()] {
		objects, err := store.ByIndex(byInstance, namespace+"/"+instance)
		if err != nil {
			continue // there is such an index
		}
		for _, object := range objects {
			if p, ok := object.(*packed); ok {
				found = append(found, p)
			}
		}
	}
	return found
}

// Version is that of an object of the same type as kind, empty if there is none.
func (s *Shelf) Version(kind client.Object, key client.ObjectKey) string {
	if p := s.find(reflect.TypeOf(kind).Elem(), key); p != nil {
		return p.version
	}
	return ""
}

// PodVersions says the name and the version of each pod of an instance.
func (s *Shelf) PodVersions(namespace, instance string, say func(name, version string)) {
	for _, p := range s.pods(namespace, instance) {
		say(p.GetName(), p.version)
	}
}
