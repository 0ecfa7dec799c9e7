package harness

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Updating is whether golden files are to be written anew.
func Updating() bool { return *update }

// Transcript writes down what becomes of one Glance: a line for each change of what its status records, for each Job
// that is created, ends or goes, for each image that its Deployment gets, and for each event about it.
//
// Lines stand in the order in which the API server accepted the writes, which the resource versions of one etcd tell
// across kinds. Events are recorded beside the work and may fall behind it, so they are a chapter of their own.
type Transcript struct {
	namespace, name string

	mu    sync.Mutex
	lines []line
	last  map[string]string
	grown time.Time
	torn  error
}

type line struct {
	revision uint64
	event    bool
	text     string
}

// Record begins a transcript of the Glance with this name; it need not exist yet. It ends with the test.
func (e *Env) Record(t testing.TB, namespace, name string) *Transcript {
	t.Helper()
	tr := &Transcript{namespace: namespace, name: name, last: map[string]string{}, grown: time.Now()}
	ctx, stop := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	t.Cleanup(func() { stop(); readers.Wait() })
	for _, list := range []client.ObjectList{&v1alpha1.GlanceList{}, &batchv1.JobList{}, &appsv1.DeploymentList{}, &corev1.EventList{}} {
		// A watch without a version begins with what is there already, as additions.
		w, err := e.Client.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			t.Fatalf("record %s: %v", name, err)
		}
		readers.Go(func() { tr.follow(ctx, w) })
	}
	return tr
}

func (tr *Transcript) follow(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				tr.mu.Lock()
				tr.torn = fmt.Errorf("a watch ended early: %v", event.Object)
				tr.mu.Unlock()
				return
			}
			tr.note(event)
		}
	}
}

func (tr *Transcript) note(event watch.Event) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	switch object := event.Object.(type) {
	case *v1alpha1.Glance:
		if object.Name == tr.name {
			tr.noteGlance(event.Type, object)
		}
	case *batchv1.Job:
		tr.noteJob(event.Type, object)
	case *appsv1.Deployment:
		tr.noteDeployment(event.Type, object)
	case *corev1.Event:
		if object.InvolvedObject.Kind == "Glance" && object.InvolvedObject.Name == tr.name && event.Type != watch.Deleted {
			tr.noteEvent(object)
		}
	}
}

func (tr *Transcript) noteGlance(kind watch.EventType, g *v1alpha1.Glance) {
	if kind == watch.Deleted {
		tr.add(g, false, "object", "gone")
		return
	}
	tr.change(g, "object", "wants %s %s", g.Spec.OpenStackRelease, g.Spec.Image.Reference())
	if g.DeletionTimestamp != nil {
		tr.change(g, "object", "deleted")
	}
	s := g.Status
	if len(s.Conditions) == 0 && s.InstalledRelease == "" && s.UpgradePhase == "" {
		return
	}
	walk := cmp.Or(s.InstalledRelease, "nothing")
	if s.TargetRelease != "" {
		walk += " → " + s.TargetRelease
	}
	database := "DatabaseReady unknown"
	for _, c := range s.Conditions {
		if c.Type == v1alpha1.ConditionDatabaseReady {
			database = fmt.Sprintf("DatabaseReady=%s %s", c.Status, c.Reason)
		}
	}
	tr.change(g, "status", "%-14s %-16s %s", cmp.Or(s.UpgradePhase, "-"), walk, database)
	tr.change(g, "images", "installed %s, target %s", cmp.Or(s.InstalledImage, "-"), cmp.Or(s.TargetImage, "-"))
}

func (tr *Transcript) noteJob(kind watch.EventType, job *batchv1.Job) {
	key := "job " + string(job.UID)
	told := tr.last[key]
	now := "created " + imageOf(job.Spec.Template.Spec)
	switch {
	case kind == watch.Deleted:
		now = "gone"
	case job.DeletionTimestamp != nil:
		now = "deleted"
	case jobOutcome(job) != "":
		now = jobOutcome(job)
	case told != "" && told != string(batchv1.JobSuspended):
		now = told
	}
	if told != now {
		tr.last[key] = now
		tr.add(job, false, "job", "%s %s", job.Name, now)
	}
}

func (tr *Transcript) noteDeployment(kind watch.EventType, d *appsv1.Deployment) {
	if kind == watch.Deleted {
		tr.add(d, false, "deployment", "%s gone", d.Name)
		return
	}
	tr.change(d, "deployment", "%s %s", d.Name, imageOf(d.Spec.Template.Spec))
	tr.change(d, "replicas", "%s %d", d.Name, ptr.Deref(d.Spec.Replicas, 1))
}

// noteEvent also tells when the same is said again, which nobody should do.
func (tr *Transcript) noteEvent(ev *corev1.Event) {
	times := max(1, ev.Count)
	if ev.Series != nil {
		times = max(times, ev.Series.Count)
	}
	again := ""
	if times > 1 {
		again = fmt.Sprintf(" (for the %dth time)", times)
	}
	tr.add(ev, true, "event", "%-7s %s: %s%s", ev.Type, ev.Reason, ev.Message, again)
}

// change adds a line if it says something new.
func (tr *Transcript) change(object client.Object, chapter, format string, args ...any) {
	key, now := chapter+" "+string(object.GetUID()), fmt.Sprintf(format, args...)
	if tr.last[key] == now {
		return
	}
	tr.last[key] = now
	tr.add(object, false, chapter, "%s", now)
}

func (tr *Transcript) add(object client.Object, event bool, chapter, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), tr.namespace, "NAMESPACE")
	tr.lines = append(tr.lines, line{revision(object.GetResourceVersion()), event, strings.TrimRight(fmt.Sprintf("%-10s  %s", chapter, text), " ")})
	tr.grown = time.Now()
}

// Text is the story so far.
func (tr *Transcript) Text(t testing.TB) string {
	t.Helper()
	tr.settle(t)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.torn != nil {
		t.Fatalf("the transcript of %s is not whole: %v", tr.name, tr.torn)
	}
	slices.SortStableFunc(tr.lines, func(a, b line) int { return cmp.Compare(a.revision, b.revision) })
	var steps, events strings.Builder
	for _, l := range tr.lines {
		out := &steps
		if l.event {
			out = &events
		}
		fmt.Fprintln(out, l.text)
	}
	return steps.String() + "\n" + events.String()
}

// settle waits until nothing has come for a moment: what a test has seen, a watch may be about to tell.
func (tr *Transcript) settle(t testing.TB) {
	const quiet, limit = 500 * time.Millisecond, 10 * time.Second
	for started := time.Now(); time.Since(started) < limit; time.Sleep(glance) {
		tr.mu.Lock()
		grown := tr.grown
		tr.mu.Unlock()
		if time.Since(grown) > quiet {
			return
		}
	}
	t.Logf("the transcript of %s goes on and on", tr.name)
}

// Golden compares the story with testdata/<name>.golden, or writes it there if the tests run with -update.
func (tr *Transcript) Golden(t testing.TB, name string) {
	t.Helper()
	told, path := tr.Text(t), filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(told), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	wanted, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read the golden transcript (write it with -update): %v", err)
	}
	// On a busy machine a watch tells late; what is missing may yet come.
	for started := time.Now(); string(wanted) != told && time.Since(started) < 10*time.Second; {
		told = tr.Text(t)
	}
	if string(wanted) != told {
		t.Errorf("the story differs from %s (read both, then -update if the new one is right)\n--- wanted\n%s\n--- told\n%s", path, wanted, told)
	}
}

func revision(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
