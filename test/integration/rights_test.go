package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/free"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, rightsAreCalls) }

// askedByTheServer are rights that a call need not show. The API server itself asks for the first: with
// OwnerReferencesPermissionEnforcement, whoever creates a child must be able to set finalizers of its owner. The second
// is for an event that is repeated within minutes, which the client turns into a series. The rest
// it asks, under the same rule, of whoever gives an object an owner: one that lost its own is taken back.
var askedByTheServer = []string{"update glances/finalizers.openstack.c5c3.io", "update keystones/finalizers.openstack.c5c3.io", "patch events.events.k8s.io",
	"delete deployments.apps", "delete services", "delete configmaps"}

// rightsAreCalls compares what the shipped roles grant with what the controllers of all tests have asked.
func rightsAreCalls(env *harness.Env) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	asked, err := env.AllCalls(ctx, harness.Actor{User: "system:serviceaccount:" + harness.ControllerNamespace + ":" + harness.ControllerServiceAccount, Agent: "controller-"})
	if err != nil {
		return err
	}
	granted, err := grants(ctx, env)
	if err != nil {
		return err
	}
	called := map[string]bool{}
	var faults []error
	for _, call := range asked {
		deed := deedOf(call.Verb, call.Group, call.Resource, call.Subresource)
		called[deed] = true
		if call.Forbidden {
			faults = append(faults, fmt.Errorf("the controller has no right to %s in %s", deed, call.Namespace))
		}
	}
	for _, deed := range askedByTheServer {
		called[deed] = true
	}
	for _, deed := range slices.Sorted(maps.Keys(granted)) {
		if !called[deed] {
			faults = append(faults, fmt.Errorf("the right to %s was granted and never used in %d calls", deed, len(asked)))
		}
	}
	return errors.Join(faults...)
}

func deedOf(verb, group, resource, subresource string) string {
	deed := verb + " " + resource
	if subresource != "" {
		deed += "/" + subresource
	}
	if group != "" {
		deed += "." + group
	}
	return deed
}

func grants(ctx context.Context, env *harness.Env) (map[string]bool, error) {
	var everywhere rbacv1.ClusterRole
	if err := env.Client.Get(ctx, client.ObjectKey{Name: harness.ControllerServiceAccount}, &everywhere); err != nil {
		return nil, fmt.Errorf("get the role: %w", err)
	}
	var home rbacv1.RoleList
	if err := env.Client.List(ctx, &home, client.InNamespace(harness.ControllerNamespace)); err != nil {
		return nil, fmt.Errorf("list the roles at home: %w", err)
	}
	rules := everywhere.Rules
	for _, role := range home.Items {
		rules = append(rules, role.Rules...)
	}
	granted := map[string]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[deedOf(verb, group, resource, "")] = true
				}
			}
		}
	}
	return granted, nil
}

func TestTheSecondReplicaGoesOnWhenTheFirstIsKilled(t *testing.T) {
	s := open(t)
	finish := s.script("db-migrate", harness.Hang())
	s.glance(build.Lockstep("2026.2")).record(walking("Migrating")).start("--leader-elect=true")
	s.awaitPod("db-migrate", "to run", runs)
	first, metrics := s.controller, free.Address(t)
	s.start("--leader-elect=true", "--metrics-address="+metrics)
	s.Eventually(t, harness.Patience, "the queue of the replica that waits to be filled", func(ctx context.Context) string {
		return unqueued(ctx, metrics)
	})
	first.Kill(t)
	finish()
	s.await("the upgrade to end", rests("2026.2"))
	require.Empty(t, s.CallsSince(t, 0, s.controller.Actor).Where(harness.On("leases"), func(c harness.Call) bool { return c.Forbidden }))
}

// queued is that a controller has at least one Glance to look at.
var queued = regexp.MustCompile(`(?m)^workqueue_depth\{(.*,)?name="glance"[^}]*\} [1-9]`)

// unqueued is why the metrics of a controller do not show that.
func unqueued(ctx context.Context, address string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return lacks(queued.Match(text), "its metrics are:\n%s", text)
}

func TestOldServersThatDoNotStreamListsAreListed(t *testing.T) {
	s := open(t).glance().record(installed2026).start("KUBE_FEATURE_WatchListClient=false")
	s.await("the Glance to rest", rests("2026.1"))
	require.NotEmpty(t, s.calls(0).Where(harness.On("glances"), harness.By("list")))
}

// limited is an account that may do in this namespace what the shipped role allows, but for anything with a resource.
func (s *scene) limited(without string) *rest.Config {
	s.t.Helper()
	s.ControllerConfig(s.t) // which brings the shipped role
	var shipped rbacv1.ClusterRole
	require.NoError(s.t, s.Client.Get(s.t.Context(), client.ObjectKey{Name: harness.ControllerServiceAccount}, &shipped))
	var rules []rbacv1.PolicyRule
	for _, rule := range shipped.Rules {
		rule.Resources = slices.DeleteFunc(rule.Resources, func(resource string) bool { return resource == without })
		if len(rule.Resources) > 0 {
			rules = append(rules, rule)
		}
	}
	at := metav1.ObjectMeta{Namespace: s.ns, Name: "limited"}
	s.Create(s.t, &corev1.ServiceAccount{ObjectMeta: at},
		&rbacv1.Role{ObjectMeta: at, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: at.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: at.Name}}})
	return s.ServiceAccountConfig(s.t, s.ns, at.Name)
}

func TestBL18RightsInOneNamespaceAreEnough(t *testing.T) {
	s := open(t).glance().record(installed2026)
	s.controller = s.RunController(t, s.ns, s.limited(""))
	s.await("the Glance to rest", rests("2026.1"))
	s.edit(build.Lockstep("2026.2"))
	s.await("the upgrade to end", rests("2026.2"))
}

func TestBL18AControllerThatLacksARightIsNeverReadyAndIdle(t *testing.T) {
	s := open(t).glance()
	controller := s.RunController(t, s.ns, s.limited("jobs"))
	said := func() string {
		log, err := os.ReadFile(controller.Log)
		require.NoError(t, err)
		return string(log)
	}
	s.Eventually(t, harness.Patience, "the missing right to be said", func(context.Context) string {
		return lacks(strings.Contains(said(), "jobs.batch is forbidden"), "%s", said())
	})
	for range 20 {
		require.NotEmpty(t, controller.Unready(t.Context()), "it does not claim to be ready")
		time.Sleep(100 * time.Millisecond)
	}
}

func TestBL18OwnersMayNeedARightOfTheirOwn(t *testing.T) {
	// With OwnerReferencesPermissionEnforcement, who creates a child must be able to set finalizers of its owner.
	s := open(t).glance()
	s.controller = s.RunController(t, s.ns, s.limited("glances/finalizers"))
	s.await("the missing right to be said", says(upgrade.DBSyncInProgress, "cannot set blockOwnerDeletion"))
}
