//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

// trouble is something that keeps a fresh install from starting, and how a person puts it right.
type trouble struct {
	name      string
	namespace string
	tag       string
	// spoil is done before the object is made, heal after the words have been read.
	spoil func(t *testing.T, namespace string)
	heal  func(t *testing.T, namespace string)
	says  []string
}

var noPods = corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}

func quota(namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"}, Spec: noPods}
}

var troubles = []trouble{
	{
		name: "the Secret with the connection is missing", namespace: "no-secret", tag: stage.TagBefore,
		spoil: func(t *testing.T, namespace string) {
			require.NoError(t, on.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stage.DatabaseSecret}}))
		},
		heal: connect,
		says: []string{"DBSyncInProgress", stage.DatabaseSecret, "not found"},
	},
	{
		name: "the image cannot be pulled", namespace: "no-image", tag: "nowhere",
		spoil: func(*testing.T, string) {},
		heal: func(t *testing.T, namespace string) {
			patchTo(t, client.ObjectKey{Namespace: namespace, Name: "images"}, stage.ReleaseBefore, stage.TagBefore)
		},
		says: []string{"DBSyncInProgress", stage.Glances.Image("nowhere"), "Pull"},
	},
	{
		name: "the quota is full", namespace: "no-quota", tag: stage.TagBefore,
		spoil: func(t *testing.T, namespace string) {
			require.NoError(t, on.Client.Create(t.Context(), quota(namespace)))
			require.NoError(t, on.Await(t.Context(), "the quota to be in force", time.Minute, on.QuotaInForce(namespace, "none")))
		},
		heal: func(t *testing.T, namespace string) {
			require.NoError(t, on.Client.Delete(t.Context(), quota(namespace)))
		},
		says: []string{"DBSyncInProgress", "exceeded quota"},
	},
}

// All of it happens side by side, since all of it is waiting.
func TestWhatGoesWrongIsSaidWithinAMinuteAndHealsByItself(t *testing.T) {
	made := map[string]time.Time{}
	for _, c := range troubles {
		g := stage.Glance{Namespace: c.namespace, Name: "images", Release: stage.ReleaseBefore, Tag: c.tag, Replicas: 0}
		require.NoError(t, on.Namespace(t.Context(), c.namespace))
		connect(t, c.namespace)
		c.spoil(t, c.namespace)
		_, err := on.Kubectl(t.Context(), g.Manifest(), "apply", "-f", "-")
		require.NoError(t, err)
		made[c.namespace] = time.Now()
	}
	for _, c := range troubles {
		t.Run("said: "+c.name, func(t *testing.T) {
			said := ""
			left := words - time.Since(made[c.namespace])
			require.NoError(t, on.AwaitObject(t.Context(), place(c), c.namespace+" to say what is wrong", left, func(o stage.Object) bool {
				said = stage.Words(o)
				return containsAll(said, c.says)
			}))
			on.Say("%s: %s", c.namespace, said)
			c.heal(t, c.namespace)
		})
	}
	for _, c := range troubles {
		t.Run("healed: "+c.name, func(t *testing.T) {
			require.NoError(t, on.AwaitReady(t.Context(), place(c), patience))
			assert.Equal(t, stage.ReleaseBefore, get(t, place(c)).Record().InstalledRelease)
			assert.NoError(t, on.DropNamespace(t.Context(), c.namespace))
		})
	}
}

func place(c trouble) client.ObjectKey {
	return client.ObjectKey{Namespace: c.namespace, Name: "images"}
}

// connect gives a namespace the Secret with the connection to an empty database.
func connect(t *testing.T, namespace string) {
	t.Helper()
	url, err := on.Database(t.Context(), stage.DatabaseOf(namespace))
	require.NoError(t, err)
	require.NoError(t, on.PutConnection(t.Context(), namespace, url))
}

func TestNothingIsLeftOfANamespaceThatIsDeletedInMidWalk(t *testing.T) {
	g := stage.Glance{Namespace: "doomed", Name: "images", Release: stage.ReleaseBefore, Tag: stage.TagBefore, Replicas: 1}
	key, err := on.Install(t.Context(), g, stage.DatabaseOf(g.Namespace))
	require.NoError(t, err)
	require.NoError(t, on.AwaitReady(t.Context(), key, patience))
	patchTo(t, key, stage.ReleaseAfter, stage.TagAfter)
	require.NoError(t, on.AwaitObject(t.Context(), key, "the walk to be under way", words, func(o stage.Object) bool {
		return o.Record().UpgradePhase == string(upgrade.Expanding)
	}))
	// What the controller did before the deletion is not what this is about.
	require.NoError(t, on.Await(t.Context(), "the first Job to be there", words, func(ctx context.Context) (bool, string, error) {
		job, err := on.Job(ctx, key, upgrade.Expand)
		return job != nil, "no Job yet", err
	}))
	began := mark(t)
	require.NoError(t, on.DropNamespace(t.Context(), g.Namespace))
	// The namespace itself may stay a while longer, empty: Kubernetes looks again only after half the time that the
	// Job's pod was given to end.
	require.NoError(t, on.Await(t.Context(), "all that was in it to be gone", patience, on.Empty(g.Namespace)))
	calls, err := on.ControllerCalls(began, g.Namespace)
	require.NoError(t, err)
	for _, c := range calls {
		made := c.Verb == "create" && c.Resource != "events" && c.Code < 300
		assert.False(t, made, "the controller made %s %s in a namespace that is being deleted", c.Resource, c.Name)
	}
}
func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
