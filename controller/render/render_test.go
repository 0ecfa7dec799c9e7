package render_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

var work = upgrade.Work{Task: upgrade.Expand, From: "2026.1", To: "2026.2", Attempt: 3, Image: "registry.example.org/openstack/glance:2026.2"}

func workload(options ...build.GlanceOption) render.Workload {
	g := build.Glance("images", append([]build.GlanceOption{build.In("openstack")}, options...)...)
	g.UID = "11111111-2222-3333-4444-555555555555"
	return service.Glance().Workload(g)
}

func TestBL04AJobNeverRunsTwoPodsAndSurvivesDrains(t *testing.T) {
	for _, task := range upgrade.Tasks {
		job := render.Job(workload(), upgrade.Work{Task: task, Image: "i"})
		assert.Equal(t, int32(1), *job.Spec.Parallelism)
		assert.Equal(t, int32(1), *job.Spec.Completions)
		assert.Equal(t, int32(4), *job.Spec.BackoffLimit)
		assert.Equal(t, batchv1.Failed, *job.Spec.PodReplacementPolicy)
		require.Len(t, job.Spec.PodFailurePolicy.Rules, 1)
		rule := job.Spec.PodFailurePolicy.Rules[0]
		assert.Equal(t, batchv1.PodFailurePolicyActionIgnore, rule.Action)
		assert.Equal(t, corev1.DisruptionTarget, rule.OnPodConditions[0].Type)
		assert.Equal(t, corev1.RestartPolicyNever, job.Spec.Template.Spec.RestartPolicy)
		assert.Nil(t, job.Spec.TTLSecondsAfterFinished, "the finished Job is evidence")
		assert.Nil(t, job.Spec.ActiveDeadlineSeconds, "no deadline unless asked")
		assert.GreaterOrEqual(t, *job.Spec.Template.Spec.TerminationGracePeriodSeconds, int64(60))
	}
	asked := render.Job(workload(func(g *v1alpha1.Glance) { g.Spec.Jobs.ActiveDeadlineSeconds = ptr.To[int64](600) }), work)
	assert.Equal(t, int64(600), *asked.Spec.ActiveDeadlineSeconds)
}

func TestEveryTaskRunsItsCommandsInOrder(t *testing.T) {
	const config = "--config-dir /etc/glance/glance-api.conf.d/"
	for task, want := range map[upgrade.Task][]string{
		upgrade.Sync:     {"glance-manage " + config + " db sync", "glance-manage " + config + " db load_metadefs"},
		upgrade.Expand:   {"glance-manage " + config + " db expand"},
		upgrade.Migrate:  {"glance-manage " + config + " db migrate"},
		upgrade.Contract: {"glance-manage " + config + " db contract"},
	} {
		pod := render.Job(workload(), upgrade.Work{Task: task, Image: "i"}).Spec.Template.Spec
		var got []string
		for _, container := range append(append([]corev1.Container{}, pod.InitContainers...), pod.Containers...) {
			got = append(got, strings.Join(container.Command, " "))
		}
		assert.Equal(t, want, got)
		assert.Len(t, pod.Containers, 1, "what runs last is the container, what runs before it are init containers")
	}
}

func TestPodsPassPodSecurityRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	level := psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}
	job := render.Job(workload(), work)
	deployment := render.Deployment(workload(), work.Image, upgrade.State{})
	for name, template := range map[string]corev1.PodTemplateSpec{"job": job.Spec.Template, "api": deployment.Spec.Template} {
		for _, result := range evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
			assert.True(t, result.Allowed, "%s: %s %s", name, result.ForbiddenReason, result.ForbiddenDetail)
		}
		assert.False(t, *template.Spec.AutomountServiceAccountToken)
	}
}

func TestAPIAndJobPodsCannotDriftApart(t *testing.T) {
	w := workload(func(g *v1alpha1.Glance) {
		g.Spec.ConfigSecretRefs = []v1alpha1.SecretReference{{Name: "keystone-credentials"}}
		g.Spec.Security.RunAsUser = ptr.To[int64](42424)
	})
	job, api := render.Job(w, work).Spec.Template.Spec, render.Deployment(w, work.Image, upgrade.State{}).Spec.Template.Spec
	assert.Equal(t, []string{"00-api-sessions.conf", "00-openstack-upgrade.conf"}, configFiles(api))
	assert.Equal(t, []string{"00-openstack-upgrade.conf"}, configFiles(job), "a schema change is never cut off")
	for _, pod := range []corev1.PodSpec{api, job} {
		pod.Volumes[0].Projected.Sources[0].ConfigMap.Items = nil
	}
	assert.Equal(t, api.Volumes, job.Volumes)
	assert.Equal(t, api.SecurityContext, job.SecurityContext)
	assert.Equal(t, api.Containers[0].Env, job.Containers[0].Env)
	assert.Equal(t, api.Containers[0].VolumeMounts, job.Containers[0].VolumeMounts)
	assert.Equal(t, api.Containers[0].SecurityContext, job.Containers[0].SecurityContext)
	assert.Equal(t, "OS_DATABASE__CONNECTION", api.Containers[0].Env[0].Name)
	assert.Equal(t, build.DatabaseSecretRef, api.Containers[0].Env[0].ValueFrom.SecretKeyRef.Name)
	assert.Contains(t, api.Containers[0].Env, corev1.EnvVar{Name: "USER", Value: "glance"}, "the image may not know the user")
}

// configFiles are the files of our ConfigMap that a pod gets.
func configFiles(pod corev1.PodSpec) []string {
	var names []string
	for _, item := range pod.Volumes[0].Projected.Sources[0].ConfigMap.Items {
		names = append(names, item.Path)
	}
	return names
}

func TestTheConfigMapHoldsEveryFileThatPodsMountAndWhatIsAskedForIsReadLast(t *testing.T) {
	w := workload(func(g *v1alpha1.Glance) {
		g.Spec.ExtraConfig = map[string]v1alpha1.ConfigSection{"database": {"connection_parameters": "charset=utf8mb4"}}
	})
	data := render.ConfigMap(w).Data
	files := configFiles(render.Deployment(w, work.Image, upgrade.State{}).Spec.Template.Spec)
	assert.ElementsMatch(t, files, slices.Collect(maps.Keys(data)))
	assert.IsIncreasing(t, files)
	assert.Contains(t, data[files[0]], "idle_transaction_timeout=10")
	assert.Equal(t, "[database]\nconnection_parameters = charset=utf8mb4\n\n", data[files[1]])
}

func TestBL20ChildrenGetOurLabelsAndNoneOfTheObjects(t *testing.T) {
	w := workload(func(g *v1alpha1.Glance) {
		g.Labels = map[string]string{"argocd.argoproj.io/instance": "tool"}
		g.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "tool"}
		g.Spec.Jobs.PodLabels = map[string]v1alpha1.LabelValue{"sidecar.istio.io/inject": "false", render.LabelComponent: render.ComponentAPI}
	})
	job := render.Job(w, work)
	for _, meta := range []map[string]string{job.Labels, job.Annotations, job.Spec.Template.Labels, job.Spec.Template.Annotations} {
		for key := range meta {
			assert.NotContains(t, key, "argocd")
		}
	}
	assert.Equal(t, "false", job.Spec.Template.Labels["sidecar.istio.io/inject"])
	assert.Equal(t, "db-expand", job.Spec.Template.Labels[render.LabelComponent], "a Job pod must never match the Service")
	require.Len(t, job.OwnerReferences, 1)
	assert.True(t, *job.OwnerReferences[0].Controller)
}

func TestBL10TheLongestNameStillMakesLegalLabels(t *testing.T) {
	name := strings.Repeat("a", v1alpha1.MaxNameLength)
	for _, task := range upgrade.Tasks {
		assert.Empty(t, validation.IsDNS1123Label(v1alpha1.JobName(name, task)))
	}
	assert.NotEmpty(t, validation.IsDNS1123Label(v1alpha1.JobName(name+"a", upgrade.Contract)), "the limit is not lower than it must be")
}

func TestOnlySchemaWorkIsTheIdentityOfAJob(t *testing.T) {
	base := render.Job(workload(), work)
	same := map[string]build.GlanceOption{
		"a log level": func(g *v1alpha1.Glance) {
			g.Spec.ExtraConfig = map[string]v1alpha1.ConfigSection{"DEFAULT": {"debug": "true"}}
		},
		"resources": func(g *v1alpha1.Glance) {
			g.Spec.Jobs.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
		},
		"labels": func(g *v1alpha1.Glance) { g.Spec.Jobs.PodLabels = map[string]v1alpha1.LabelValue{"a": "b"} },
	}
	for what, option := range same {
		job := render.Job(workload(option), work)
		assert.Equal(t, base.Annotations[render.AnnotationWork], job.Annotations[render.AnnotationWork], what)
		assert.NotEqual(t, base.Annotations[render.AnnotationTemplate], job.Annotations[render.AnnotationTemplate], what)
	}
	others := map[string]*batchv1.Job{
		"database": render.Job(workload(func(g *v1alpha1.Glance) { g.Spec.Database.SecretRef.Name = "other" }), work),
		"image":    render.Job(workload(), upgrade.Work{Task: work.Task, From: work.From, To: work.To, Attempt: work.Attempt, Image: "other"}),
		"attempt":  render.Job(workload(), upgrade.Work{Task: work.Task, From: work.From, To: work.To, Attempt: 4, Image: work.Image}),
		"target":   render.Job(workload(), upgrade.Work{Task: work.Task, From: work.From, To: "2027.1", Attempt: work.Attempt, Image: work.Image}),
	}
	for what, job := range others {
		assert.NotEqual(t, base.Annotations[render.AnnotationWork], job.Annotations[render.AnnotationWork], what)
	}
}

func TestReplicasAreWrittenOnceUnlessAsked(t *testing.T) {
	unset := workload(func(g *v1alpha1.Glance) { g.Spec.Deployment.Replicas = nil })
	first := render.Creation(render.Deployment(unset, "i:1", upgrade.State{}))
	assert.Equal(t, int32(3), *first.Spec.Replicas)

	live := asStored(first)
	live.Spec.Replicas = ptr.To[int32](7) // an autoscaler's
	_, changes := render.Merge(live, render.Deployment(unset, "i:1", upgrade.State{}), false)
	assert.False(t, changes)
	merged, changes := render.Merge(live, render.Deployment(unset, "i:2", upgrade.State{}), false)
	assert.True(t, changes)
	assert.Equal(t, int32(7), *merged.Spec.Replicas)

	asked := workload(build.Replicas(2))
	merged, changes = render.Merge(live, render.Deployment(asked, "i:1", upgrade.State{}), false)
	assert.True(t, changes)
	assert.Equal(t, int32(2), *merged.Spec.Replicas)
}

func TestMergeWritesOnlyWhatIsRendered(t *testing.T) {
	rendered := render.Deployment(workload(), "i:1", upgrade.State{Installed: "2026.1"})
	live := asStored(render.Creation(rendered))
	live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"

	_, changes := render.Merge(live, rendered, false)
	assert.False(t, changes, "a restart that a person asked for is not drift")

	_, changes = render.Merge(live, render.Deployment(workload(), "i:1", upgrade.State{Installed: "2026.1", AbortedImage: "i:9"}), false)
	assert.False(t, changes, "the note alone is no reason to write")
	merged, changes := render.Merge(live, render.Deployment(workload(), "i:1", upgrade.State{Installed: "2026.1", AbortedImage: "i:9"}), true)
	assert.True(t, changes, "unless it is out of date")
	assert.True(t, equality.Semantic.DeepEqual(live.Spec, merged.Spec), "and then nothing else is written")

	merged, changes = render.Merge(live, render.Deployment(workload(), "i:2", upgrade.State{Installed: "2026.1"}), false)
	assert.True(t, changes)
	assert.Equal(t, "now", merged.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])

	drifted := live.DeepCopy()
	drifted.Spec.Template.Spec.Containers[0].Image = "somebody/else:1"
	merged, changes = render.Merge(drifted, rendered, false)
	assert.True(t, changes, "an image set by hand is put back")
	assert.Equal(t, "i:1", merged.Spec.Template.Spec.Containers[0].Image)

	stripped := live.DeepCopy()
	stripped.Labels = nil
	merged, changes = render.Merge(stripped, rendered, false)
	assert.True(t, changes)
	assert.Equal(t, render.ManagedBy, merged.Labels[render.LabelManagedBy])
}

func TestRecordIsReadBack(t *testing.T) {
	s := upgrade.State{Installed: "2026.1", InstalledImage: "r:1", Target: "2026.2", TargetImage: "r:2", Phase: upgrade.RollingUpdate, AbortedImage: "r:0", Ahead: "2026.2", Attempt: 4, ContractBegun: true}
	got, ok := render.ReadRecord(render.Record(s))
	assert.True(t, ok)
	assert.Equal(t, s, got)
	for _, text := range []string{"", "{", "[]", "null x"} {
		_, ok := render.ReadRecord(text)
		assert.False(t, ok, text)
	}
}

func TestINICannotBeBrokenByAValue(t *testing.T) {
	got := render.INI(map[string]v1alpha1.ConfigSection{"b": {"y": "1\n\n[evil]\r\nx = 2\n", "a": "3"}, "a": {}})
	assert.Equal(t, "[a]\n\n[b]\na = 3\ny = 1\n    [evil]\n    x = 2\n\n", got)
}

// asStored is what the API server makes of a Deployment, as far as it matters
// to a comparison: defaults filled in.
func asStored(d *appsv1.Deployment) *appsv1.Deployment {
	stored := d.DeepCopy()
	stored.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	stored.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
	stored.Spec.Template.Spec.Containers[0].TerminationMessagePath = corev1.TerminationMessagePathDefault
	stored.Spec.Template.Spec.Containers[0].ReadinessProbe.SuccessThreshold = 1
	return stored
}

func TestPodsTellWhichReleaseTheyServe(t *testing.T) {
	release := func(s upgrade.State) string {
		return render.Deployment(workload(), "i:1", s).Spec.Template.Annotations[render.AnnotationRelease]
	}
	assert.Equal(t, "2026.1", release(upgrade.State{Installed: "2026.1"}))
	assert.Equal(t, "2026.2", release(upgrade.State{Installed: "2026.1", Target: "2026.2", Phase: upgrade.RollingUpdate}))
}

func TestARolloutNeverServesWithLessThanWasAskedFor(t *testing.T) {
	strategy := render.Deployment(workload(), "i:1", upgrade.State{}).Spec.Strategy.RollingUpdate
	assert.Equal(t, 0, strategy.MaxUnavailable.IntValue())
	assert.Equal(t, 1, strategy.MaxSurge.IntValue())
}

func TestPodsFollowTheirConfiguration(t *testing.T) {
	debug := func(g *v1alpha1.Glance) {
		g.Spec.ExtraConfig = map[string]v1alpha1.ConfigSection{"DEFAULT": {"debug": "true"}}
	}
	of := func(w render.Workload) corev1.PodTemplateSpec {
		return render.Deployment(w, "i:1", upgrade.State{}).Spec.Template
	}
	assert.NotEqual(t, of(workload()), of(workload(debug)))
}

func TestTheNoteIsWrittenAlong(t *testing.T) {
	before, after := upgrade.State{Installed: "2026.1"}, upgrade.State{Installed: "2026.1", AbortedImage: "i:9"}
	live := asStored(render.Creation(render.Deployment(workload(), "i:1", before)))
	merged, _ := render.Merge(live, render.Deployment(workload(), "i:1", after), true)
	noted, ok := render.ReadRecord(merged.Annotations[render.AnnotationRecord])
	assert.True(t, ok)
	assert.Equal(t, after, noted)
}
