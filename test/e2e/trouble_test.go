//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

// trouble is something that keeps a fresh install from starting, and how a person puts it right.
type trouble struct {
	name string
	// spoil is done before the object is made, heal after the words have been read.
	glance stage.Glance
	spoil  func(t *testing.T, namespace string)
	heal   func(t *testing.T, key client.ObjectKey)
	says   []string
}

func TestWhatGoesWrongIsSaidWithinAMinuteAndHealsByItself(t *testing.T) {
	glance := func(namespace, tag string) stage.Glance {
		return stage.Glance{Namespace: namespace, Name: "images", Release: stage.ReleaseBefore, Tag: tag, Replicas: 0}
	}
	for _, c := range []trouble{
		{
			name: "the Secret with the connection is missing", glance: glance("no-secret", stage.TagBefore),
			spoil: func(t *testing.T, namespace string) {
				require.NoError(t, on.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stage.DatabaseSecret}}))
			},
			heal: func(t *testing.T, key client.ObjectKey) { connect(t, key.Namespace) },
			says: []string{"DBSyncInProgress", stage.DatabaseSecret, "not found"},
		},
		{
			name: "the image cannot be pulled", glance: glance("no-image", "nowhere"),
			heal: func(t *testing.T, key client.ObjectKey) { patchTo(t, key, stage.ReleaseBefore, stage.TagBefore) },
			says: []string{"DBSyncInProgress", "localhost/glance:nowhere", "Pull"},
		},
		{
			name: "the quota is full", glance: glance("no-quota", stage.TagBefore),
			spoil: func(t *testing.T, namespace string) {
				none := corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
				require.NoError(t, on.Client.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"}, Spec: none}))
				require.NoError(t, on.Await(t.Context(), "the quota to be in force", time.Minute, on.QuotaInForce(namespace, "none")))
			},
			heal: func(t *testing.T, key client.ObjectKey) {
				require.NoError(t, on.Client.Delete(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "none"}}))
			},
			says: []string{"DBSyncInProgress", "exceeded quota"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			key := c.glance.Key()
			require.NoError(t, on.Namespace(t.Context(), key.Namespace))
			connect(t, key.Namespace)
			if c.spoil != nil {
				c.spoil(t, key.Namespace)
			}
			_, err := on.Kubectl(t.Context(), c.glance.Manifest(), "apply", "-f", "-")
			require.NoError(t, err)
			said := ""
			require.NoError(t, on.AwaitGlance(t.Context(), key, key.Namespace+" to say what is wrong", words, func(g *v1alpha1.Glance) bool {
				said = stage.Words(g)
				return containsAll(said, c.says)
			}))
			on.Say("%s: %s", key.Namespace, said)
			c.heal(t, key)
			require.NoError(t, on.AwaitReady(t.Context(), key, patience))
			assert.Equal(t, stage.ReleaseBefore, get(t, key).Status.InstalledRelease)
			t.Cleanup(func() { assert.NoError(t, on.RemoveNamespace(t.Context(), key.Namespace)) })
		})
	}
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
	require.NoError(t, on.AwaitGlance(t.Context(), key, "the walk to be under way", words, func(g *v1alpha1.Glance) bool {
		return g.Status.UpgradePhase == string(upgrade.Expanding)
	}))
	began := mark(t)
	require.NoError(t, on.RemoveNamespace(t.Context(), g.Namespace))
	_, err = on.Get(t.Context(), key)
	assert.True(t, apierrors.IsNotFound(err), "the object is left: %v", err)
	left, err := on.Pods(t.Context(), key, string(upgrade.Expand))
	require.NoError(t, err)
	assert.Empty(t, left)
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
