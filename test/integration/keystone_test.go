package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// The images of a Keystone; it has the name of the Glance of other scenes, so that what speaks of children fits both.
const (
	oldKeystone  = build.KeystoneRepository + ":2026.1"
	nextKeystone = build.KeystoneRepository + ":2026.2"
	digest       = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	otherDigest  = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// keyed is a scene with a Keystone, whose tag names the release.
type keyed struct{ *scene }

func openKeystone(t *testing.T) keyed {
	t.Helper()
	s := open(t)
	fernet, admin := build.KeystoneSecrets(s.ns)
	s.Create(t, fernet, admin)
	return keyed{s}
}

func (s keyed) keystone(image string) keyed {
	s.t.Helper()
	s.Create(s.t, build.Keystone(s.ns, name, imaged(image)))
	return s
}

// imaged asks for an image by its tag, or by its digest.
func imaged(reference string) func(*v1alpha1.Keystone) {
	return func(k *v1alpha1.Keystone) {
		k.Spec.Image.Tag, k.Spec.Image.Digest = reference, ""
		if strings.HasPrefix(reference, "sha256:") {
			k.Spec.Image.Tag, k.Spec.Image.Digest = "", reference
		}
	}
}

func (s keyed) current() *v1alpha1.Keystone {
	s.t.Helper()
	k := &v1alpha1.Keystone{}
	require.NoError(s.t, s.Client.Get(s.t.Context(), s.key(name), k))
	return k
}

func (s keyed) ask(image string) {
	s.t.Helper()
	before := s.current()
	after := before.DeepCopy()
	imaged(image)(after)
	require.NoError(s.t, s.Client.Patch(s.t.Context(), after, client.MergeFrom(before)))
}

// recorded writes a status, as an earlier controller left it.
func (s keyed) recorded(state upgrade.State) keyed {
	s.t.Helper()
	k := s.current()
	k.SetState(state)
	require.NoError(s.t, s.Client.Status().Update(s.t.Context(), k))
	return s
}

func (s keyed) wait(what string, lack func(*v1alpha1.Keystone) string) *v1alpha1.Keystone {
	s.t.Helper()
	return harness.Await(s.t, s.Env, &v1alpha1.Keystone{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}, what, lack)
}

func tells(reason upgrade.Reason, words ...string) func(*v1alpha1.Keystone) string {
	return func(k *v1alpha1.Keystone) string {
		c := meta.FindStatusCondition(k.Status.Conditions, v1alpha1.ConditionDatabaseReady)
		if c == nil {
			return "there is no condition"
		}
		holds := c.Reason == string(reason) && c.ObservedGeneration == k.Generation
		for _, word := range words {
			holds = holds && strings.Contains(c.Message, word)
		}
		return lacks(holds, "DatabaseReady is %s %s (generation %d of %d): %s", c.Status, c.Reason, c.ObservedGeneration, k.Generation, c.Message)
	}
}

// restsAt demands that a tag is installed and everything is ready, with no walk under way.
func restsAt(tag string) func(*v1alpha1.Keystone) string {
	return func(k *v1alpha1.Keystone) string {
		s := k.Status
		ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		holds := s.InstalledRelease == tag && s.UpgradePhase == "" && s.TargetRelease == "" && s.InstalledImage == k.Spec.Image.Reference().String() && s.ExpandedRelease == "" &&
			ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == k.Generation
		return lacks(holds, "installed %s %s, phase %q, target %q, expanded %q, %+v", s.InstalledRelease, s.InstalledImage, s.UpgradePhase, s.TargetRelease, s.ExpandedRelease, s.Conditions)
	}
}

func stands(phase upgrade.Phase) func(*v1alpha1.Keystone) string {
	return func(k *v1alpha1.Keystone) string {
		return lacks(k.Status.UpgradePhase == string(phase), "phase is %q", k.Status.UpgradePhase)
	}
}

// atKeystone is the record of one at rest, and upgradingKeystone that of a walk.
var atKeystone = upgrade.State{Installed: "2026.1", InstalledImage: oldKeystone}

func upgradingKeystone(phase upgrade.Phase) upgrade.State {
	return upgrade.State{Installed: "2026.1", InstalledImage: oldKeystone, Target: "2026.2", TargetImage: nextKeystone, Phase: phase, Attempt: 1, Ahead: "2026.2"}
}

func commandsOf(job *batchv1.Job) (all []string) {
	pod := job.Spec.Template.Spec
	for _, container := range append(pod.InitContainers, pod.Containers...) {
		all = append(all, strings.Join(container.Command, " "))
	}
	return all
}

func TestAKeystoneIsInstalledWithItsFirstUserPatchedAndWalked(t *testing.T) {
	s := openKeystone(t).keystone("2026.1-bookworm")
	s.start()
	s.wait("the Keystone to be installed", restsAt("2026.1-bookworm"))
	first := s.job(upgrade.Sync)
	run := commandsOf(first)
	require.Len(t, run, 2)
	require.Equal(t, "keystone-manage db_sync", run[0])
	require.Contains(t, run[1], "keystone-manage bootstrap --bootstrap-username admin")
	require.Contains(t, run[1], fmt.Sprintf("--bootstrap-public-url http://%s.%s.svc:5000/v3", name, s.ns))
	require.True(t, slices.ContainsFunc(first.Spec.Template.Spec.Containers[0].Env, func(v corev1.EnvVar) bool {
		return v.Name == "OS_BOOTSTRAP_PASSWORD" && v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil
	}), "the password is a reference")
	require.NotContains(t, fmt.Sprint(first.Spec.Template.Spec.InitContainers), "OS_BOOTSTRAP_PASSWORD", "the schema needs no password")
	s.holdsFor(2*time.Second, "one sync is enough", func(k *v1alpha1.Keystone) string {
		return lacks(s.job(upgrade.Sync) != nil && s.job(upgrade.Sync).UID == first.UID, "it has run again")
	})

	s.ask("2026.1-p1")
	s.wait("the patch", restsAt("2026.1-p1"))
	require.Equal(t, []string{"keystone-manage db_sync"}, commandsOf(s.job(upgrade.Sync)), "the first user is made once")
	require.Equal(t, "2026.1", s.deployment().Spec.Template.Annotations["openstack.c5c3.io/release"])

	finish := s.script(upgrade.Migrate, harness.Hang())
	s.ask("2026.2-trixie")
	k := s.wait("the walk", stands(upgrade.Migrating))
	require.Equal(t, "2026.1-p1", k.Status.InstalledRelease)
	require.Equal(t, "2026.2-trixie", k.Status.TargetRelease)
	s.awaitPod(upgrade.Migrate, "to run", runs)
	finish()
	s.wait("the Keystone to be upgraded", restsAt("2026.2-trixie"))
	for task, command := range map[upgrade.Task]string{upgrade.Expand: "--expand", upgrade.Migrate: "--migrate", upgrade.Contract: "--contract"} {
		require.Equal(t, []string{"keystone-manage db_sync " + command}, commandsOf(s.job(task)))
	}
	keys := s.deployment().Spec.Template.Spec.Volumes[1]
	require.Equal(t, int32(0o440), *keys.Secret.DefaultMode, "nobody else reads the keys")
	require.Equal(t, build.FernetSecretRef, keys.Secret.SecretName)
	require.NotNil(t, s.deployment().Spec.Template.Spec.SecurityContext.FSGroup)
}

// holdsFor demands that the Keystone lacks nothing for a while.
func (s keyed) holdsFor(during time.Duration, what string, lack func(*v1alpha1.Keystone) string) {
	s.t.Helper()
	harness.Throughout(s.t, s.Env, during, &v1alpha1.Keystone{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}, what, lack)
}

// ahead demands what an abort of a Keystone leaves.
func (s keyed) ahead() {
	s.t.Helper()
	forward := fmt.Sprintf(`kubectl patch keystone %s -n %s --type=merge -p '{"spec":{"image":{"tag":"2026.2"}}}'`, name, s.ns)
	restored := fmt.Sprintf(`kubectl patch keystone %s -n %s --subresource=status --type=merge -p '{"status":{"expandedRelease":null}}'`, name, s.ns)
	said := tells(upgrade.DowngradeNotSupported, "The database is ahead: it may have been expanded for 2026.2", "2026.1, which is installed and serves", forward, restored)
	s.wait("the abort to be told", said)
	s.awaitDeployment("the old pods to serve", rolledTo(oldKeystone))
	k := s.wait("the record", stands(upgrade.Steady))
	require.Equal(s.t, upgrade.State{Installed: "2026.1", InstalledImage: oldKeystone, AbortedImage: nextKeystone, Attempt: k.Status.UpgradeAttempt, Ahead: "2026.2"}, k.State())
	for _, task := range upgrade.Tasks {
		require.Nil(s.t, s.job(task), "no Job is left, and none is run")
	}
	s.holdsFor(2*time.Second, "no sync", func(k *v1alpha1.Keystone) string {
		if s.job(upgrade.Sync) != nil {
			return "the database is synced"
		}
		return said(k)
	})
	s.wait("that the pods are ready", func(k *v1alpha1.Keystone) string {
		ready, serving := meta.IsStatusConditionTrue(k.Status.Conditions, v1alpha1.ConditionReady), meta.IsStatusConditionTrue(k.Status.Conditions, v1alpha1.ConditionDeploymentReady)
		return lacks(serving && !ready, "serving %t, ready %t", serving, ready)
	})
}

func TestAnAbortedKeystoneServesOnAheadOfItsRelease(t *testing.T) {
	for _, c := range []struct {
		phase upgrade.Phase
		task  upgrade.Task
	}{{upgrade.Expanding, upgrade.Expand}, {upgrade.Migrating, upgrade.Migrate}, {upgrade.RollingUpdate, upgrade.Contract}} {
		t.Run(string(c.phase), func(t *testing.T) {
			s := openKeystone(t)
			s.script(c.task, harness.Hang())
			s.keystone("2026.2").recorded(upgradingKeystone(c.phase))
			s.start()
			s.awaitPod(c.task, "to run", runs)
			s.ask("2026.1")
			s.ahead()
		})
	}
}

func TestAKeystoneThatIsAheadGoesForwardOrForgetsAfterARestore(t *testing.T) {
	ahead := atKeystone
	ahead.Ahead, ahead.AbortedImage, ahead.Attempt = "2026.2", nextKeystone, 1
	t.Run("no patch is synced, and the way forward clears it", func(t *testing.T) {
		s := openKeystone(t).keystone("2026.1").recorded(ahead)
		s.start()
		s.wait("the words", tells(upgrade.DowngradeNotSupported, "The database is ahead"))
		s.ask("2026.1-p1")
		s.wait("the refusal", tells(upgrade.DowngradeNotSupported, "no build of 2026.1 can be synced with it"))
		require.Nil(t, s.job(upgrade.Sync))
		s.awaitDeployment("the old pods to stay", rolledTo(oldKeystone))
		s.ask("2026.2")
		s.wait("the upgrade to end", restsAt("2026.2"))
	})
	t.Run("a restore is told", func(t *testing.T) {
		s := openKeystone(t).keystone("2026.1").recorded(ahead)
		s.start()
		s.wait("the words", tells(upgrade.DowngradeNotSupported, "The database is ahead"))
		k := s.current()
		before := k.DeepCopy()
		k.Status.ExpandedRelease = ""
		require.NoError(t, s.Client.Status().Patch(t.Context(), k, client.MergeFrom(before)))
		s.wait("the Keystone to rest", restsAt("2026.1"))
		require.Equal(t, []string{"keystone-manage db_sync"}, commandsOf(s.job(upgrade.Sync)))
	})
	t.Run("a status that is lost comes back with it", func(t *testing.T) {
		s := openKeystone(t)
		s.script(upgrade.Migrate, harness.Hang())
		s.keystone("2026.2").recorded(upgradingKeystone(upgrade.Migrating))
		s.start()
		s.awaitPod(upgrade.Migrate, "to run", runs)
		s.awaitDeployment("the note", func(d *appsv1.Deployment) string {
			note := d.Annotations["openstack.c5c3.io/recorded-state"]
			return lacks(strings.Contains(note, `"expandedRelease":"2026.2"`), "%s", note)
		})
		s.controller.Kill(t)
		k := s.current()
		k.Status = v1alpha1.KeystoneStatus{}
		require.NoError(t, s.Client.Status().Update(t.Context(), k))
		s.ask("2026.1")
		s.start()
		s.wait("the words", tells(upgrade.DowngradeNotSupported, "The database is ahead"))
		require.Nil(t, s.job(upgrade.Sync))
	})
}

func TestAKeystoneIsRefusedByTheSameLaw(t *testing.T) {
	for _, c := range []struct {
		name   string
		state  upgrade.State
		image  string
		reason upgrade.Reason
		words  string
	}{
		{"a release is skipped", atKeystone, "2027.1", upgrade.UpgradePathInvalid, "2026.1 → 2027.1 skips 2026.2"},
		{"a release before", atKeystone, "2025.2-p3", upgrade.DowngradeNotSupported, "2026.1 → 2025.2 goes backwards"},
		{"a third release in a walk", upgradingKeystone(upgrade.Migrating), "2027.1", upgrade.UpgradeTargetChanged, "2027.1 is neither of the two"},
		{"an image in a walk that names none", upgradingKeystone(upgrade.Migrating), digest, upgrade.UpgradeTargetChanged, "it cannot be told to which of the two it belongs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openKeystone(t)
			s.script(upgrade.Migrate, harness.Hang())
			s.keystone(c.image).recorded(c.state)
			s.start()
			k := s.wait("the refusal", tells(c.reason, c.words))
			require.Equal(t, c.state, k.State())
			for _, task := range upgrade.Tasks {
				require.Nil(t, s.job(task))
			}
		})
	}
}

func TestAKeystonePassesTheSameGate(t *testing.T) {
	s := openKeystone(t)
	finish := s.script(upgrade.Migrate, harness.Hang())
	s.keystone("2026.2").recorded(upgradingKeystone(upgrade.Migrating))
	s.start()
	s.awaitDeployment("the old pods to serve", rolledTo(oldKeystone))
	let := s.scriptImage(api, ":2026.1", harness.Lost())
	s.awaitPod(upgrade.Migrate, "to run", runs)
	finish()
	s.awaitDeployment("the new pods to serve", rolledTo(nextKeystone))
	held := tells(upgrade.UpgradeRollingUpdate, "pods of the previous template are left: "+name)
	s.wait("the words of the gate", held)
	s.holdsFor(1500*time.Millisecond, "the gate", held)
	require.Nil(t, s.job(upgrade.Contract), "contract has not begun")
	let()
	s.wait("the upgrade to end", restsAt("2026.2"))
}

func TestAKeystoneIsRepairedLikeAnyOther(t *testing.T) {
	t.Run("a typo in the tag", func(t *testing.T) {
		s := openKeystone(t)
		s.scriptImage(upgrade.Expand, ":2026.2-typo", harness.NeverPull("no such image"))
		s.keystone("2026.1").recorded(atKeystone)
		s.start()
		s.wait("the Keystone to rest", restsAt("2026.1"))
		s.ask("2026.2-typo")
		s.wait("the kubelet's words", tells(upgrade.ExpandInProgress, "no such image"))
		s.ask("2026.2")
		s.wait("the upgrade to end", restsAt("2026.2"))
	})
	t.Run("a Job that has failed", func(t *testing.T) {
		s := openKeystone(t)
		repair := s.script(upgrade.Migrate, harness.Fail(1, "no"))
		s.keystone("2026.2").recorded(upgradingKeystone(upgrade.Migrating))
		s.start()
		s.wait("the failure", tells(upgrade.MigrateFailed, "delete Job "+name+"-db-migrate to retry, or set the image back to "+oldKeystone+" to abort"))
		repair()
		s.deleteJob(upgrade.Migrate)
		s.wait("the upgrade to end", restsAt("2026.2"))
	})
	t.Run("a Job of an earlier walk does not count", func(t *testing.T) {
		s := openKeystone(t)
		s.keystone("2026.2").recorded(upgradingKeystone(upgrade.Expanding))
		s.start()
		s.wait("the upgrade to end", restsAt("2026.2"))
		first := s.job(upgrade.Expand)
		s.controller.Kill(t)
		again := upgradingKeystone(upgrade.Expanding)
		again.Attempt = 2
		s.recorded(again)
		s.start()
		s.awaitJob(upgrade.Expand, "of the second walk", func(j *batchv1.Job) string { return lacks(j.UID != first.UID, "it is still that of the first") })
	})
}

func TestAKeystoneWithoutATagIsTrustedAndNeverSyncedBesideANamedOne(t *testing.T) {
	s := openKeystone(t).keystone(digest)
	s.start()
	s.wait("the install", restsAt(digest))
	s.ask(otherDigest)
	s.wait("a patch", restsAt(otherDigest))
	require.Equal(t, "an unnamed release", s.deployment().Spec.Template.Annotations["openstack.c5c3.io/release"])
	before := s.job(upgrade.Sync).UID

	finish := s.script(upgrade.Expand, harness.Hang())
	s.ask("2026.2")
	k := s.wait("a walk, since nobody knows what serves", tells(upgrade.ExpandInProgress, "an unnamed release → 2026.2"))
	require.Equal(t, otherDigest, k.Status.InstalledRelease)
	s.awaitPod(upgrade.Expand, "to run", runs)
	require.Equal(t, before, s.job(upgrade.Sync).UID, "no sync beside pods of nobody knows what")
	finish()
	s.wait("the upgrade to end", restsAt("2026.2"))
}

func TestOneNameIsHeldByTheFirstOfTwoServicesAndPassedOnWhenItGoes(t *testing.T) {
	s := openKeystone(t)
	g := build.Glance(name, build.In(s.ns), build.Replicas(1))
	s.Create(t, g, build.Keystone(s.ns, name))
	s.start()
	var won, lost client.Object
	s.Eventually(t, harness.Patience, "one of the two to be installed", func(ctx context.Context) string {
		glance, keystone := s.now(), s.current()
		switch {
		case rests("2026.1")(glance) == "":
			won, lost = glance, keystone
		case restsAt("2026.1")(keystone) == "":
			won, lost = keystone, glance
		default:
			return rests("2026.1")(glance) + "; " + restsAt("2026.1")(keystone)
		}
		return ""
	})
	kind := won.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = map[bool]string{true: "Glance", false: "Keystone"}[won.GetUID() == g.UID]
	}
	loser := lost.(interface {
		client.Object
		Record() *v1alpha1.ServiceStatus
	})
	s.Eventually(t, harness.Patience, "the other to say whose the name is", func(ctx context.Context) string {
		if err := s.Client.Get(ctx, s.key(name), loser); err != nil {
			return err.Error()
		}
		condition := meta.FindStatusCondition(loser.Record().Conditions, v1alpha1.ConditionDeploymentReady)
		return lacks(condition != nil && condition.Reason == "NameTaken" && strings.Contains(condition.Message, kind+" "+name), "%+v", loser.Record().Conditions)
	})
	require.Empty(t, loser.Record().InstalledRelease)
	for _, child := range []client.Object{s.deployment(), s.job(upgrade.Sync), s.config()} {
		require.Equal(t, won.GetUID(), metav1.GetControllerOf(child).UID, "nothing is shared")
	}
	require.NoError(t, s.Client.Delete(t.Context(), won))
	s.Eventually(t, 2*time.Minute, "the other to be installed", func(ctx context.Context) string {
		if err := s.Client.Get(ctx, s.key(name), loser); err != nil {
			return err.Error()
		}
		return lacks(meta.IsStatusConditionTrue(loser.Record().Conditions, v1alpha1.ConditionReady), "%+v", loser.Record().Conditions)
	})
}

func (s *scene) config() *corev1.ConfigMap {
	s.t.Helper()
	config := &corev1.ConfigMap{}
	require.NoError(s.t, s.Client.Get(s.t.Context(), s.key(name+"-config"), config))
	return config
}
