package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// removeDeployment deletes the Deployment as kubectl does: its pods follow in the background.
func (s *scene) removeDeployment() {
	s.t.Helper()
	require.NoError(s.t, s.Client.Delete(s.t.Context(), s.deployment(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// stays demands that a Job does not exist for a while.
func (s *scene) stays(during time.Duration, task upgrade.Task, words func(*v1alpha1.Glance) string) {
	s.t.Helper()
	s.holds(during, "the wait, without Job "+string(task), func(g *v1alpha1.Glance) string {
		return words(g) + lacks(s.job(task) == nil, "Job %s exists", task)
	})
}

func TestHostileAStatusThatIsSetBackByHandWalksAnewInEveryPhase(t *testing.T) {
	s := steady(t)
	s.edit(build.Lockstep("2026.2"))
	s.await("the upgrade to end", rests("2026.2"))
	s.awaitJob(upgrade.Sync, "the sync afterwards", completeOn(next))
	before := map[upgrade.Task]types.UID{}
	for _, task := range upgrade.PhaseTasks {
		before[task] = s.job(task).UID
	}
	generation := s.now().Generation
	// A backup of the database was restored, and the record repaired as the documents say.
	s.status(func(status *v1alpha1.ServiceStatus) { status.InstalledRelease, status.InstalledImage = "2026.1", old })
	s.await("the upgrade to end again", rests("2026.2"))
	require.Equal(t, generation, s.now().Generation, "no edit of the spec tells the two walks apart")
	for _, task := range upgrade.PhaseTasks {
		require.NotEqual(t, before[task], s.job(task).UID, "%s of the walk before does not count", task)
		require.Empty(t, isComplete(s.job(task)))
	}
	s.toldTimes("Normal UpgradeInitiated", 2)
	s.toldTimes("Normal UpgradeComplete", 2)
}

func TestHostileADeploymentDeletedRightAfterAnAbortBringsNoSyncBesideThePodsOfTheTarget(t *testing.T) {
	s, _ := contracting(t)
	let := s.scriptImage(api, ":2026.2", harness.Lost())
	s.edit(build.Lockstep("2026.1"))
	s.await("the abort", in(upgrade.Steady))
	s.removeDeployment()
	waits := says(upgrade.DBSyncInProgress, "Database sync of 2026.1 waits until no pod of 2026.2 is left")
	s.await("the wait", waits)
	s.awaitDeployment("the old pods to serve", func(d *appsv1.Deployment) string {
		return lacks(imageIn(d) == old && d.Status.AvailableReplicas == 1, "%s, %d available", imageIn(d), d.Status.AvailableReplicas)
	})
	s.stays(3*time.Second, upgrade.Sync, waits)
	let()
	s.aborted()
}

func imageIn(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }

func TestHostileAnObjectReplacedByForceInstallsOnlyOnceNoPodOfAnotherReleaseIsLeft(t *testing.T) {
	s := steady(t)
	s.awaitJob(upgrade.Sync, "to complete", isComplete)
	let := s.scriptImage(api, ":2026.1", harness.Lost())
	s.awaitPod(api, "to serve", runs)
	g := s.now()
	require.NoError(t, s.Client.Delete(t.Context(), g))
	harness.AwaitGone(t, s.Env, g)
	s.glance(build.Lockstep("2026.2"))
	waits := says(upgrade.DBSyncInProgress, "Database sync of 2026.2 waits until no pod of 2026.1 is left")
	s.await("the wait", waits)
	s.stays(3*time.Second, upgrade.Sync, waits)
	let()
	s.await("the install to end", rests("2026.2"))
}

func TestHostileAnOldPodThatIsSetApartByItsLabelHoldsContractBack(t *testing.T) {
	s, release := rolling(t)
	apart := s.awaitPod(api, "to serve", runs)
	adjust(s, &apart, func(p *corev1.Pod) { delete(p.Labels, "app.kubernetes.io/component") })
	release()
	s.awaitDeployment("the new pods to serve", rolledTo(next))
	s.heldBack("pods of the previous template are left: " + apart.Name)
	require.NoError(t, s.Client.Delete(t.Context(), &apart))
	s.goesOn()
}

func TestHostileAJobDeletedAgainAndAgainWhenItIsBarelyThereNeverHasTwoPods(t *testing.T) {
	s := open(t)
	finish := s.script(upgrade.Expand, harness.Hang())
	die := s.script(upgrade.Expand, harness.IgnoreTerm(time.Second))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Expanding)).start()
	var before types.UID
	for i := range 5 {
		// The pause grows: before the Job controller has seen the Job, while it makes the pod, and after that.
		job := s.awaitJob(upgrade.Expand, "to be there anew", func(job *batchv1.Job) string { return lacks(job.UID != before, "it is the one before") })
		before = job.UID
		time.Sleep(time.Duration(i) * 8 * time.Millisecond)
		require.NoError(t, s.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	s.awaitJob(upgrade.Expand, "to be there anew", func(job *batchv1.Job) string { return lacks(job.UID != before, "it is the one before") })
	finish()
	die()
	s.await("the upgrade to end", rests("2026.2")) // The guard of the scene has seen every pod.
}

func TestHostileAPodThatComesLateForAJobThatIsGoneWorksAlone(t *testing.T) {
	s := open(t)
	finish := s.script(upgrade.Expand, harness.Hang())
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Expanding)).start()
	first := s.awaitPod(upgrade.Expand, "to run", runs)
	before := s.job(upgrade.Expand).UID
	s.deleteJob(upgrade.Expand)
	time.Sleep(2 * time.Second)
	// The Job controller acted on a cache that still had the Job. The garbage collector finds such a pod, sooner or later.
	late := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: first.Name + "-late", Labels: first.Labels, Annotations: first.Annotations}, Spec: first.Spec}
	late.Spec.NodeName = ""
	s.Create(t, late)
	s.awaitPod(upgrade.Expand, "to run late", runs)
	s.stays(4*time.Second, upgrade.Expand, in(upgrade.Expanding))
	require.NoError(t, s.Client.Delete(t.Context(), late))
	finish()
	s.await("the upgrade to end", rests("2026.2")) // The guard of the scene has seen every pod.
	require.NotEqual(t, before, s.job(upgrade.Expand).UID)
}

func TestHostileTheDatabaseCannotChangeInMidWalk(t *testing.T) {
	finish := func() {}
	s := expanding(t, func(s *scene) { finish = s.script(upgrade.Expand, harness.Hang()) })
	s.awaitPod(upgrade.Expand, "to run", runs)
	for what, option := range map[string]build.GlanceOption{
		"the Secret": build.Database("other"),
		"the key":    build.Adjust(func(g *v1alpha1.Glance) { g.Spec.Database.SecretRef.Key = "other" }),
	} {
		g := s.now()
		err := s.Client.Patch(t.Context(), build.Change(g.DeepCopy(), option), client.MergeFrom(g))
		require.True(t, apierrors.IsInvalid(err), "%s: %v", what, err)
		require.ErrorContains(t, err, "spec.database cannot change while an upgrade is under way: its phases must all meet the same database; finish or abort it first", what)
	}
	finish()
	s.await("the upgrade to end", rests("2026.2"))
}

func TestHostileWithAnotherDatabaseAtRestPodsStayUntilItsSchemaIsThere(t *testing.T) {
	s := steady(t)
	s.awaitJob(upgrade.Sync, "to complete", isComplete)
	other := build.DatabaseSecret(s.ns)
	other.Name = "other"
	s.Create(t, other)
	finish := s.script(upgrade.Sync, harness.Hang())
	before := s.deployment()
	s.edit(build.Database("other"))
	pod := s.awaitPod(upgrade.Sync, "to run on it", func(pod corev1.Pod) string {
		return lacks(databaseOf(pod.Spec) == "other", "it is %s", databaseOf(pod.Spec)) + runs(pod)
	})
	unready := func(g *v1alpha1.Glance) string {
		return lacks(database(g).Status == metav1.ConditionFalse, "DatabaseReady is %s", database(g).Status) + says(upgrade.DBSyncInProgress)(g)
	}
	s.await("the sync to be said", unready)
	s.holds(2*time.Second, "the sync", unready)
	require.Equal(t, before.Generation, s.deployment().Generation, "pods are not sent to a database without a schema")
	require.Equal(t, build.DatabaseSecretRef, databaseOf(s.deployment().Spec.Template.Spec))
	require.Equal(t, other.Name, databaseOf(pod.Spec))
	finish()
	s.awaitDeployment("the pods to follow", func(d *appsv1.Deployment) string {
		return lacks(databaseOf(d.Spec.Template.Spec) == "other", "they are at %s", databaseOf(d.Spec.Template.Spec)) + rolledTo(old)(d)
	})
	s.await("the Glance to rest", rests("2026.1"))
}

func TestHostileAReleaseAndAnotherDatabaseInOneEditAreTakenOneAfterTheOther(t *testing.T) {
	s := steady(t)
	s.awaitJob(upgrade.Sync, "to complete", isComplete)
	other := build.DatabaseSecret(s.ns)
	other.Name = "other"
	s.Create(t, other)
	finish := s.script(upgrade.Sync, harness.Hang())
	before := s.deployment()
	s.edit(build.Database("other"), build.Lockstep("2026.2"))
	pod := s.awaitPod(upgrade.Sync, "to run on it", func(pod corev1.Pod) string {
		return lacks(databaseOf(pod.Spec) == "other", "it is %s", databaseOf(pod.Spec)) + runs(pod)
	})
	require.Equal(t, old, pod.Spec.Containers[0].Image, "what is installed follows first")
	s.await("the order to be said", func(g *v1alpha1.Glance) string {
		return says(upgrade.DBSyncInProgress, "the upgrade 2026.1 → 2026.2 begins once the pods have followed to the other database")(g) + in(upgrade.Steady)(g)
	})
	require.Equal(t, before.Generation, s.deployment().Generation, "pods are not sent to a database without a schema")
	require.Nil(t, s.job(upgrade.Expand))
	finish()
	s.await("the upgrade to end", rests("2026.2"))
	require.Equal(t, "other", databaseOf(s.deployment().Spec.Template.Spec))
}

// databaseOf is the Secret that the first container takes its database connection from.
func databaseOf(pod corev1.PodSpec) string {
	for _, env := range append(pod.InitContainers, pod.Containers...)[0].Env {
		if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
			return env.ValueFrom.SecretKeyRef.Name
		}
	}
	return ""
}

func TestHostileAPatchWhosePodsCrashIsRepairedByTheNextPatch(t *testing.T) {
	s := steady(t, build.Replicas(2))
	s.scriptImage(api, ":2026.1-bad", harness.CrashLoop(1, "boom"))
	s.edit(build.Tag("2026.1-bad"))
	s.awaitDeployment("the bad patch to roll", func(d *appsv1.Deployment) string {
		return lacks(imageIn(d) == old+"-bad" && d.Status.UpdatedReplicas == 1, "%s, %d updated", imageIn(d), d.Status.UpdatedReplicas)
	})
	s.await("the crash to be said", func(g *v1alpha1.Glance) string {
		said := conditionMessage(g, v1alpha1.ConditionDeploymentReady)
		return lacks(strings.Contains(said, "CrashLoopBackOff"), "%s", said)
	})
	s.edit(build.Tag("2026.1-good"))
	s.awaitDeployment("the good patch to roll", rolledTo(old+"-good"))
	s.await("the Glance to rest", rests("2026.1"))
}

func TestHostileAPolicyThatRewritesImagesOfPodsDoesNotHoldTheGate(t *testing.T) {
	s := open(t)
	s.rewriteImages("registry.example.org", "mirror.example.org")
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	s.goesOn()
	for _, pod := range append(s.pods(api), s.pods(upgrade.Contract)...) {
		require.Equal(t, "mirror.example.org/openstack/glance:2026.2", imageOf(&pod), pod.Name)
	}
}

// rewriteImages makes pods pull from elsewhere, as sites with a mirror do.
func (s *scene) rewriteImages(from, to string) {
	s.t.Helper()
	name := s.ns + "-rewrite"
	replace := func(kind string) admissionv1.Mutation {
		return admissionv1.Mutation{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
			Expression: `has(object.spec.` + kind + `) ? object.spec.` + kind + `.map(c, object.spec.` + kind + `.indexOf(c)).map(i, JSONPatch{op: "replace",
  path: "/spec/` + kind + `/" + string(i) + "/image", value: object.spec.` + kind + `[i].image.replace("` + from + `", "` + to + `")}) : []`}}
	}
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			FailurePolicy:      ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.ns}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
			Mutations: []admissionv1.Mutation{replace("containers"), replace("initContainers")},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	s.Create(s.t, policy, binding)
	s.untilAllowed(policy, binding)
	s.Eventually(s.t, harness.Patience, "the policy to be in force", func(ctx context.Context) string {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "try"}, Spec: build.Pod("try", from+"/try:1")}
		err := client.NewDryRunClient(s.Client).Create(ctx, pod)
		return lacks(err == nil && imageOf(pod) == to+"/try:1", "a dry run gives %s, %v", imageOf(pod), err)
	})
}

func TestHostileADeploymentThatTheServerRefusesDoesNotKeepAnAbortFromDeletingItsJobs(t *testing.T) {
	nodes := func(zone string) build.GlanceOption {
		return build.Adjust(func(g *v1alpha1.Glance) { g.Spec.Deployment.NodeSelector = map[string]string{"zone": zone} })
	}
	s := expanding(t, func(s *scene) { s.script(upgrade.Expand, harness.Hang()) })
	s.awaitPod(upgrade.Expand, "to run", runs)
	s.edit(nodes("not a label"))
	s.await("the refusal", says(upgrade.ExpandInProgress, "update Deployment images", "Invalid value"))
	s.edit(build.Lockstep("2026.1"))
	s.await("the abort", in(upgrade.Steady))
	for _, task := range upgrade.PhaseTasks {
		require.Nil(t, s.job(task))
		require.Empty(t, s.pods(task))
	}
	s.toldTimes("Normal UpgradeAborted", 1)
	s.awaitJob(upgrade.Sync, "to complete, whatever serves", isComplete)
	s.edit(nodes("a-label"))
	s.aborted()
}

func TestHostileARestartNotedInPodAnnotationsDoesNotHoldTheWalk(t *testing.T) {
	const restarted = "kubectl.kubernetes.io/restartedAt"
	at := func(when string) build.GlanceOption {
		return build.Adjust(func(g *v1alpha1.Glance) { g.Spec.Deployment.PodAnnotations = map[string]string{restarted: when} })
	}
	s := steady(t, at("2026-01-01"))
	s.edit(at("2026-02-02"), build.Lockstep("2026.2"))
	s.await("the upgrade to end", rests("2026.2"))
	s.awaitDeployment("the pods to roll", rolledTo(next))
	require.Equal(t, "2026-02-02", s.deployment().Spec.Template.Annotations[restarted])
}

func TestHostileNothingIsMadeOnTheConfigurationOfSomebodyElse(t *testing.T) {
	s := open(t)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "images-config"}, Data: map[string]string{"theirs.conf": "[DEFAULT]"}}
	s.Create(t, theirs)
	s.glance().start()
	said := says(upgrade.DBSyncInProgress, "held up by ConfigMap images-config, which belongs to somebody else")
	s.await("the ConfigMap to be named", said)
	s.stays(3*time.Second, upgrade.Sync, said)
	require.True(t, apierrors.IsNotFound(s.Client.Get(t.Context(), s.key(name), &appsv1.Deployment{})), "no Deployment")
	require.Empty(t, s.pods(""))
	version := theirs.ResourceVersion
	require.NoError(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	require.Equal(t, version, theirs.ResourceVersion, "and it is not touched")
	require.NoError(t, s.Client.Delete(t.Context(), theirs))
	s.await("the install to end", rests("2026.1"))
}

func TestHostileADeploymentWithoutItsOwnerServesOnAndIsTakenBack(t *testing.T) {
	s := steady(t)
	before, pod := s.awaitDeployment("to serve", rolledTo(old)), s.awaitPod(api, "to serve", runs)
	adjust(s, s.deployment(), func(d *appsv1.Deployment) { d.OwnerReferences = nil })
	s.awaitDeployment("to have its owner again", func(d *appsv1.Deployment) string {
		return lacks(metav1.IsControlledBy(d, s.now()), "owners are %v", d.OwnerReferences)
	})
	s.await("the Glance to rest", rests("2026.1"))
	mark := s.Mark(t)
	s.holds(2*time.Second, "the rest", rests("2026.1"))
	require.Empty(t, s.calls(mark).Where(harness.Writes), "once is enough")
	require.Equal(t, before.UID, s.deployment().UID)
	require.Equal(t, before.Generation, s.deployment().Generation)
	require.Equal(t, pod.UID, s.awaitPod(api, "to serve", runs).UID)
	s.edit(build.Lockstep("2026.2"))
	s.await("an upgrade to end", rests("2026.2"))
}

func TestHostileADeploymentDeletedInAWalkStartedOverAfterContractComesBackWithTheTarget(t *testing.T) {
	s, _ := contracting(t)
	s.edit(build.Tag("2026.2-p1"))
	s.await("the wait", both(in(upgrade.Contracting), says(upgrade.ContractInProgress, "the image changed to "+patched)))
	finish := s.script(upgrade.Expand, harness.Hang())
	again := s.scriptImage(upgrade.Contract, ":2026.2-p1", harness.Succeed(0))
	defer again()
	s.deleteJob(upgrade.Contract)
	s.await("the walk to be started over", in(upgrade.Expanding))
	s.awaitPod(upgrade.Expand, "to run", runs)
	before := s.deployment()
	require.Equal(t, next, imageIn(before), "pods that have rolled stay")
	s.removeDeployment()
	s.awaitDeployment("to be back with the target", func(d *appsv1.Deployment) string {
		return lacks(d.UID != before.UID, "it is the one before") + rolledTo(patched)(d)
	})
	var sets appsv1.ReplicaSetList
	require.NoError(t, s.Client.List(t.Context(), &sets, client.InNamespace(s.ns)))
	for _, set := range sets.Items {
		if metav1.IsControlledBy(&set, s.deployment()) {
			require.Equal(t, patched, set.Spec.Template.Spec.Containers[0].Image, "contract may have run: the installed release cannot serve, not even for a moment")
		}
	}
	finish()
	s.wholeOn(patched)
}

func TestHostileALongMinReadySecondsMakesADeploymentThatTheServerTakes(t *testing.T) {
	s := open(t).glance(build.MinReadySeconds(600)).record(installed2026).start()
	takes := func(seconds int32) {
		s.awaitDeployment("to be taken", func(d *appsv1.Deployment) string {
			deadline := ptr.Deref(d.Spec.ProgressDeadlineSeconds, 0)
			return lacks(d.Spec.MinReadySeconds == seconds && deadline > seconds && d.Status.ObservedGeneration == d.Generation,
				"minReadySeconds %d, progressDeadlineSeconds %d", d.Spec.MinReadySeconds, deadline)
		})
		g := s.now()
		require.NotContains(t, database(g).Message+conditionMessage(g, v1alpha1.ConditionDeploymentReady), "nvalid")
	}
	takes(600)
	s.edit(build.MinReadySeconds(7200))
	takes(7200)
	s.edit(build.MinReadySeconds(0))
	s.await("the Glance to rest", rests("2026.1"))
}
