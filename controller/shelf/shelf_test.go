package shelf

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

// family is a Glance and what is made for it.
func family(name string) (g *v1alpha1.Glance, children []client.Object) {
	g = build.Glance(name, build.In("openstack"))
	g.UID, g.ResourceVersion = types.UID("uid-of-"+name), "7"
	g.Status.InstalledRelease = "2026.1"
	w := service.Glance().Workload(g)
	state := upgrade.State{Installed: "2026.1", InstalledImage: build.DefaultRepository + ":2026.1"}
	job := render.Job(w, upgrade.Work{Task: upgrade.Sync, To: "2026.1", Image: state.InstalledImage})
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	deployment := render.Creation(render.Deployment(w, state.InstalledImage, state))
	pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.Namespace, pod.Name = "openstack", name+"-55d8f-xyz"
	children = []client.Object{job, deployment, render.Service(w), render.ConfigMap(w), pod}
	for i, child := range children {
		child.SetResourceVersion(fmt.Sprint(i + 1))
		child.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "somebody"}})
	}
	return g, children
}

// full is a shelf with the objects on it, as informers would have put them there.
func full(t testing.TB, objects ...client.Object) *Shelf {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	s := New(scheme, render.LabelInstance, render.LabelComponent)
	for _, kind := range []client.Object{&v1alpha1.Glance{}, &batchv1.Job{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.Pod{}} {
		informer := s.Informer(&toolscache.ListWatch{}, kind, 0, nil)
		for _, object := range objects {
			if fmt.Sprintf("%T", object) != fmt.Sprintf("%T", kind) {
				continue
			}
			packed, err := s.Pack(object.DeepCopyObject())
			require.NoError(t, err)
			again, err := s.Pack(packed)
			require.NoError(t, err)
			require.Same(t, packed, again, "packing twice is packing once")
			require.NoError(t, informer.GetIndexer().Add(packed))
		}
	}
	return s
}

func TestWhatIsReadIsWhatWasPackedButForWhatNobodyReads(t *testing.T) {
	_, first := family("images-1")
	g, second := family("images-2")
	s := full(t, append(append(first, second...), g)...)
	for _, object := range append(second, g) {
		wanted, ok := object.DeepCopyObject().(client.Object)
		require.True(t, ok)
		slim(wanted)
		found, ok := wanted.DeepCopyObject().(client.Object)
		require.True(t, ok)
		found.SetAnnotations(map[string]string{"left": "over"})
		require.NoError(t, Reader{s}.Get(t.Context(), client.ObjectKeyFromObject(object), found))
		assert.NotEmpty(t, found.GetObjectKind().GroupVersionKind().Kind)
		wanted.GetObjectKind().SetGroupVersionKind(found.GetObjectKind().GroupVersionKind())
		assert.True(t, equality.Semantic.DeepEqual(wanted, found), "%T: %+v\n\n%+v", object, wanted, found)
		assert.Equal(t, object.GetResourceVersion(), s.Version(object, client.ObjectKeyFromObject(object)))
	}
	err := Reader{s}.Get(t.Context(), client.ObjectKey{Namespace: "openstack", Name: "other"}, &batchv1.Job{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.Empty(t, s.Version(&batchv1.Job{}, client.ObjectKey{Namespace: "openstack", Name: "other"}))
	err = Reader{s}.Get(t.Context(), client.ObjectKeyFromObject(g), &corev1.Secret{})
	require.Error(t, err)
	assert.False(t, apierrors.IsNotFound(err), "what nobody watches is not known to be missing")
}

func TestWhatEventsAskOfAPackedObjectIsThatOfTheObject(t *testing.T) {
	_, children := family("images-1")
	s := full(t)
	for _, child := range children {
		o, err := s.Pack(child.DeepCopyObject())
		require.NoError(t, err)
		packed, ok := o.(client.Object)
		require.True(t, ok)
		assert.Equal(t, child.GetNamespace(), packed.GetNamespace())
		assert.Equal(t, child.GetName(), packed.GetName())
		assert.Equal(t, child.GetResourceVersion(), packed.GetResourceVersion())
		assert.Equal(t, child.GetLabels(), packed.GetLabels())
		assert.Equal(t, child.GetOwnerReferences(), packed.GetOwnerReferences())
		assert.Equal(t, child.GetUID(), packed.GetUID())
		key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(packed)
		require.NoError(t, err)
		assert.Equal(t, child.GetNamespace()+"/"+child.GetName(), key)
	}
}

func TestPodsAreFoundByTheirInstance(t *testing.T) {
	_, first := family("images-1")
	_, second := family("images-2")
	s := full(t, append(first, second...)...)
	labels := client.MatchingLabels{render.LabelInstance: "images-2", render.LabelName: "glance"}
	var pods corev1.PodList
	require.NoError(t, Reader{s}.List(t.Context(), &pods, client.InNamespace("openstack"), labels))
	require.Len(t, pods.Items, 1)
	assert.Equal(t, "images-2-55d8f-xyz", pods.Items[0].Name)
	labels[render.LabelName] = "keystone"
	require.NoError(t, Reader{s}.List(t.Context(), &pods, client.InNamespace("openstack"), labels))
	assert.Empty(t, pods.Items, "those of a namesake of another kind are not its pods")
	require.Error(t, Reader{s}.List(t.Context(), &pods, client.InNamespace("openstack")), "that would be a walk through all of them")
	var said []string
	s.PodVersions("openstack", "images-2", func(name, version string) { said = append(said, name+" "+version) })
	assert.Equal(t, []string{"images-2-55d8f-xyz 5"}, said)
}

func TestASecondObjectOfItsSortTakesLittle(t *testing.T) {
	_, first := family("images-1")
	_, second := family("images-2")
	s := full(t, first...)
	for i, child := range second {
		whole, err := encode(child)
		require.NoError(t, err)
		o, err := s.Pack(child)
		require.NoError(t, err)
		packed, ok := o.(*packed)
		require.True(t, ok)
		t.Logf("%T: %d bytes of %d", child, len(packed.body), len(whole))
		assert.Less(t, len(packed.body), 250, "%T %d", child, i)
	}
}

func BenchmarkPack(b *testing.B) {
	_, first := family("images-1")
	_, second := family("images-2")
	s := full(b, first...)
	for _, child := range second {
		b.Run(fmt.Sprintf("%T", child), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Pack(child); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUnpack(b *testing.B) {
	_, first := family("images-1")
	g, second := family("images-2")
	s := full(b, append(append(first, second...), g)...)
	for _, child := range append(second, g) {
		b.Run(fmt.Sprintf("%T", child), func(b *testing.B) {
			key := client.ObjectKeyFromObject(child)
			for b.Loop() {
				if err := (Reader{s}).Get(b.Context(), key, child); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestALabelThatAnybodySetsMakesNoMoreSamples(t *testing.T) {
	_, children := family("images-1")
	s := full(t)
	s.components = []string{render.ComponentAPI}
	for i := range 100 {
		pod := children[len(children)-1].DeepCopyObject().(client.Object)
		if i > 0 {
			pod.GetLabels()[render.LabelComponent] = fmt.Sprint(i)
		}
		_, err := s.Pack(pod)
		require.NoError(t, err)
	}
	assert.Len(t, s.samples, 2)
}
