package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/harness"
	"github.com/c5c3/openstack-upgrade/test/rows"
)

// TestNothingIsStuckWhateverIsRemovedFirstOrLast removes the parts of an installation one right after the other, with
// nobody there to answer from the beginning. In the orders chosen each part is once the first and once the last.
func TestNothingIsStuckWhateverIsRemovedFirstOrLast(t *testing.T) {
	env := harness.Shared(t)
	sweep(t, env)
	sh := newShell(t, env, "default")
	for i, order := range [][]string{
		{"configuration", "crd", "objects", "product"}, {"objects", "product", "crd", "configuration"},
		{"crd", "product", "configuration", "objects"}, {"product", "configuration", "objects", "crd"},
	} {
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			ns, own := fmt.Sprintf("removed-%d", i), fmt.Sprintf("removed-%d-own", i)
			for _, each := range []string{ns, own} {
				env.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: each}})
			}
			in(t, env, ns, rows.Steady(rows.Glance("2026.1", "2026.1", ""), "2026.1"))
			withdraw := register(t, env, configuration(t, env, nobody, nil))
			remove := map[string]string{
				"configuration": "kubectl delete validatingwebhookconfiguration openstack-upgrade-webhook --wait=false",
				"crd":           "kubectl delete crd glances.openstack.c5c3.io --wait=false",
				"objects":       "kubectl delete namespace " + ns + " --wait=false",
				"product":       "kubectl delete namespace " + own + " --wait=false",
			}
			for _, part := range order {
				seen, ok := sh.types(t, remove[part])
				require.True(t, ok, "%s: %s", part, seen)
			}
			seen, ok := sh.types(t, "kubectl wait --for=delete crd/glances.openstack.c5c3.io namespace/"+ns+" namespace/"+own+" --timeout=50s")
			require.True(t, ok, seen)
			seen, ok = sh.types(t, "kubectl apply --server-side -f "+env.Path("deploy", "base", "crds", "openstack.c5c3.io_glances.yaml"))
			require.True(t, ok, seen)
			env.Eventually(t, harness.Patience, "the kind to be served again", func(ctx context.Context) string {
				if err := env.Client.List(ctx, &v1alpha1.GlanceList{}); err != nil {
					return err.Error()
				}
				return ""
			})
			withdraw()
		})
	}
}

// sweep removes what other tests have left, with the finalizers that they have set: nobody else will take those off.
func sweep(t *testing.T, env *harness.Env) {
	t.Helper()
	var list v1alpha1.GlanceList
	require.NoError(t, env.Client.List(t.Context(), &list))
	for _, g := range list.Items {
		if len(g.Finalizers) > 0 {
			require.NoError(t, env.Client.Patch(t.Context(), &g, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		}
		require.NoError(t, client.IgnoreNotFound(env.Client.Delete(t.Context(), &g)))
	}
}
