//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/drill"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

// order is a way to upgrade by hand that looks right and is not.
type order struct {
	name, namespace string
	walk            func(t *testing.T, s *stage.ByHand)
	// cause is in the words of at least one failure.
	cause string
}

var imageBefore, imageAfter = drill.Ref(stage.ReleaseBefore), drill.Ref(stage.ReleaseAfter)

const noColumn = "Unknown column 'value_2026_1'"

var wrongOrders = []order{
	{
		name: "the one-pass sync before the rollout", namespace: "drill-one-pass", cause: noColumn,
		walk: func(t *testing.T, s *stage.ByHand) {
			require.NoError(t, s.Manage(t.Context(), imageAfter, "sync"))
			roll(t, s)
			rolledOut(t, s)
		},
	},
	{
		name: "contract as soon as the Deployment is Available", namespace: "drill-available", cause: noColumn,
		walk: func(t *testing.T, s *stage.ByHand) {
			require.NoError(t, s.Manage(t.Context(), imageAfter, "expand"))
			require.NoError(t, s.Manage(t.Context(), imageAfter, "migrate"))
			roll(t, s)
			by(t, s, "wait", "--for=condition=Available", "--timeout=5m", "deployment/"+s.Key.Name)
			require.NoError(t, s.Manage(t.Context(), imageAfter, "contract"))
			rolledOut(t, s)
		},
	},
	{
		// The clients are served by new pods alone by then; what fails is what an old pod still holds.
		name: "contract as soon as the rollout is complete", namespace: "drill-rolled-out",
		walk: func(t *testing.T, s *stage.ByHand) {
			require.NoError(t, s.Manage(t.Context(), imageAfter, "expand"))
			require.NoError(t, s.Manage(t.Context(), imageAfter, "migrate"))
			roll(t, s)
			rolledOut(t, s)
			require.NoError(t, s.Manage(t.Context(), imageAfter, "contract"))
		},
	},
}

func by(t *testing.T, s *stage.ByHand, args ...string) {
	t.Helper()
	_, err := on.Kubectl(t.Context(), "", append([]string{"-n", s.Key.Namespace}, args...)...)
	require.NoError(t, err)
}

func roll(t *testing.T, s *stage.ByHand) {
	t.Helper()
	by(t, s, "set", "image", "deployment/"+s.Key.Name, "api="+imageAfter)
}

func rolledOut(t *testing.T, s *stage.ByHand) {
	t.Helper()
	by(t, s, "rollout", "status", "--timeout=10m", "deployment/"+s.Key.Name)
}

func theWrongOrder(t *testing.T, from client.ObjectKey, o order, table *results) {
	dropped(t, o.namespace)
	service, err := on.CopyByHand(t.Context(), from, o.namespace)
	require.NoError(t, err)
	require.NoError(t, service.Manage(t.Context(), imageBefore, "sync"))
	require.NoError(t, service.Serve(t.Context(), imageBefore))
	pods, err := service.Pods(t.Context())
	require.NoError(t, err)
	require.Len(t, pods, 3)
	clients := gather(t, service.Key, pods[0].Name)

	o.walk(t, service)
	require.NoError(t, on.LetGo(t.Context(), o.namespace, uploaded))
	_, _, uploadErr := clients.upload.Answer(t.Context(), patience)
	r := clients.disperse(t, o.name, uploadErr)
	table.add(r)

	assert.Positive(t, r.failed()+r.wrong(), "this order is said to be unsafe, and nothing failed under it")
	assert.Error(t, uploadErr, "an old pod wrote to a schema that is gone")
	if o.cause != "" {
		assert.Positive(t, r.requests.Failed, "no client noticed")
		assert.Contains(t, causes(r), o.cause, "it failed for another reason than the one this test is about")
	}
}

// causes are the first failures of an order, word for word.
func causes(r result) string {
	var all []string
	for _, f := range r.requests.Failures {
		all = append(all, f.What)
	}
	return strings.Join(all, "\n")
}
