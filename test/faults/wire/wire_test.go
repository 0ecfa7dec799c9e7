package wire_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

// far stands in for the API server: it takes every write, and tells a watch whatever it is given to say.
type far struct {
	mu    sync.Mutex
	taken []string
	said  chan string
	// refusing is that it takes nothing.
	refusing atomic.Bool
}

func (f *far) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	out.Header().Set("Content-Type", "application/json")
	if in.URL.Query().Get("watch") == "" {
		f.mu.Lock()
		f.taken = append(f.taken, in.Method+" "+in.URL.Path)
		f.mu.Unlock()
		if f.refusing.Load() {
			out.WriteHeader(http.StatusConflict)
			fmt.Fprint(out, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Conflict","code":409}`)
			return
		}
		fmt.Fprint(out, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x"}}`)
		return
	}
	tells := io.Writer(out)
	flush := http.NewResponseController(out).Flush
	if strings.Contains(in.Header.Get("Accept-Encoding"), "gzip") { // as the real one packs for whoever takes it
		out.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(out)
		tells = packed
		flush = func() error { return errors.Join(packed.Flush(), http.NewResponseController(out).Flush()) }
	}
	for {
		if flush() != nil {
			return
		}
		select {
		case <-in.Context().Done():
			return
		case name := <-f.said:
			fmt.Fprintf(tells, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q}}}`+"\n", name)
		}
	}
}

func (f *far) deeds() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.taken
	f.taken = nil
	return taken
}

func lay(t *testing.T) (*wire.Wire, *far, kubernetes.Interface) {
	t.Helper()
	f := &far{said: make(chan string, 10)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	w := wire.Open(t, &rest.Config{Host: server.URL, QPS: -1})
	client, err := kubernetes.NewForConfig(w.Config())
	require.NoError(t, err)
	return w, f, client
}

func job(name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
}

func at(t *testing.T, text string) wire.Point {
	t.Helper()
	p, err := wire.ParsePoint(text)
	require.NoError(t, err)
	return p
}

func TestWritesAreKnownByWhatTheyDoAndTheSoManiethTime(t *testing.T) {
	w, _, client := lay(t)
	ctx := t.Context()
	jobs := client.BatchV1().Jobs("n")
	_, err := jobs.Create(ctx, job("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoordinationV1().Leases("n").Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a.17"}, Regarding: corev1.ObjectReference{Name: "a"}, Reason: "UpgradeInitiated"}
	_, err = client.EventsV1().Events("n").Create(ctx, event, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.EventsV1().Events("n").Patch(ctx, "a.17", types.MergePatchType, []byte(`{"series":{"count":2}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = jobs.UpdateStatus(ctx, job("a"), metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = jobs.UpdateStatus(ctx, job("a"), metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = jobs.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, jobs.Delete(ctx, "a", metav1.DeleteOptions{}))

	var told []string
	for _, write := range w.Writes() {
		told = append(told, fmt.Sprintf("%d %s = %d", write.Number, write.Point, write.Code))
	}
	assert.Equal(t, []string{
		"1 create jobs a 1 = 200", "1 create events a:UpgradeInitiated 1 = 200", "1 patch events a:UpgradeInitiated 1 = 200",
		"2 update jobs/status a 1 = 200", "3 update jobs/status a 2 = 200", "4 delete jobs a 1 = 200",
	}, told)
}

func TestEachDeedIsDoneToItsWriteAndToNoOther(t *testing.T) {
	for text, holds := range map[string]struct {
		taken, killed int
		says          func(error) bool
	}{
		"kill before: update jobs a 2": {taken: 3, killed: 1, says: cut},
		"kill after: update jobs a 2":  {taken: 4, killed: 1, says: cut},
		"lose reply: update jobs a 2":  {taken: 4, says: cut},
		"time out: update jobs a 2":    {taken: 4, says: apierrors.IsTimeout},
		"conflict 1: update jobs a 2":  {taken: 3, says: apierrors.IsConflict},
		"kill after: write 2":          {taken: 4, killed: 1, says: cut},
	} {
		t.Run(text, func(t *testing.T) {
			w, f, client := lay(t)
			fault, err := wire.ParseFault(text)
			require.NoError(t, err)
			w.Plan(fault)
			var killed atomic.Int32
			w.OnKill(func() { killed.Add(1) })
			for i := range 4 {
				_, err := client.BatchV1().Jobs("n").Update(t.Context(), job("a"), metav1.UpdateOptions{})
				if i != 1 {
					require.NoError(t, err)
					continue
				}
				require.True(t, holds.says(err), "%v", err)
			}
			assert.Len(t, f.deeds(), holds.taken)
			assert.EqualValues(t, holds.killed, killed.Load())
			assert.Equal(t, holds.taken == 4, w.Writes()[1].Committed)
			assert.Empty(t, w.Unmet())
		})
	}
}

func TestAFaultAboutWhatWasCommittedIsNotMetByWhatWasRefused(t *testing.T) {
	for _, deed := range []string{"kill after", "lose reply", "time out"} {
		t.Run(deed, func(t *testing.T) {
			w, f, client := lay(t)
			fault, err := wire.ParseFault(deed + ": update jobs a 1")
			require.NoError(t, err)
			w.Plan(fault)
			w.OnKill(func() {})
			f.refusing.Store(true)
			_, err = client.BatchV1().Jobs("n").Update(t.Context(), job("a"), metav1.UpdateOptions{})
			require.Error(t, err)
			assert.Equal(t, []wire.Fault{fault}, w.Unmet())
			assert.False(t, w.Writes()[0].Committed)
		})
	}
}

func cut(err error) bool {
	return err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
}

func TestAStormOfConflictsIsAsLongAsPlanned(t *testing.T) {
	w, f, client := lay(t)
	w.Plan(wire.Fault{Deed: wire.Conflict, At: at(t, "update jobs a 2"), Times: 5}, wire.Fault{Deed: wire.KillAfter, At: at(t, "delete jobs a 1")})
	for i := range 8 {
		_, err := client.BatchV1().Jobs("n").Update(t.Context(), job("a"), metav1.UpdateOptions{})
		assert.Equal(t, i >= 1 && i <= 5, apierrors.IsConflict(err), "%d: %v", i, err)
		assert.Equal(t, i < 5, len(w.Unmet()) == 2, "a storm is met when the last of it has come")
	}
	assert.Len(t, f.deeds(), 3)
	assert.Equal(t, []wire.Fault{{Deed: wire.KillAfter, At: at(t, "delete jobs a 1")}}, w.Unmet())
}

func TestWhatIsRefusedIsNoWrite(t *testing.T) {
	w, f, client := lay(t)
	w.Refuse(func(p wire.Point) bool { return p.Name == "a" })
	_, err := client.BatchV1().Jobs("n").Create(t.Context(), job("a"), metav1.CreateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	_, err = client.BatchV1().Jobs("n").Create(t.Context(), job("b"), metav1.CreateOptions{})
	require.NoError(t, err)
	w.Refuse(nil)
	_, err = client.BatchV1().Jobs("n").Create(t.Context(), job("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Len(t, f.deeds(), 2)
	assert.Len(t, w.Writes(), 2)
	assert.Equal(t, at(t, "create jobs a 1"), w.Writes()[1].Point)
}

func TestAFaultIsReadAsItIsWritten(t *testing.T) {
	for _, text := range []string{"kill before: create jobs images-db-expand 1", "conflict 50: update glances/status images 3", "lose reply: write 7"} {
		fault, err := wire.ParseFault(text)
		require.NoError(t, err)
		assert.Equal(t, text, fault.String())
	}
	for _, text := range []string{"", "kill", "kill: create jobs a 1", "conflict x: create jobs a 1", "kill after: write 0", "kill after: create jobs a", "kill after: create jobs a 0"} {
		_, err := wire.ParseFault(text)
		assert.ErrorContains(t, err, "is no ", text)
	}
}

// hear gives the names that a watch tells within a moment.
func hear(t *testing.T, events watch.Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		select {
		case event, open := <-events.ResultChan():
			require.True(t, open, "the watch has ended before %s", name)
			require.Equal(t, name, event.Object.(*corev1.Pod).Name)
		case <-time.After(5 * time.Second):
			t.Fatalf("nothing of %s is heard", name)
		}
	}
}

func hearNothing(t *testing.T, events watch.Interface) {
	t.Helper()
	select {
	case event := <-events.ResultChan():
		t.Fatalf("%v is heard", event)
	case <-time.After(200 * time.Millisecond):
	}
}

func begin(t *testing.T, client kubernetes.Interface, version string) (watch.Interface, error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	return client.CoreV1().Pods("n").Watch(ctx, metav1.ListOptions{ResourceVersion: version})
}

func TestWhatAFrozenWatchWouldTellIsToldInOrderWhenItThaws(t *testing.T) {
	w, f, client := lay(t)
	events, err := begin(t, client, "1")
	require.NoError(t, err)
	f.said <- "a"
	hear(t, events, "a")
	w.Freeze("jobs")
	f.said <- "b"
	hear(t, events, "b")
	w.Freeze("pods")
	assert.Zero(t, w.Kept("d"))
	f.said <- "c"
	f.said <- "d"
	hearNothing(t, events)
	assert.Positive(t, w.Kept(`"d"`))
	assert.Zero(t, w.Kept(`"b"`), "it was told")
	w.Thaw("pods")
	hear(t, events, "c", "d")
	w.Freeze(wire.Everything)
	f.said <- "e"
	hearNothing(t, events)
	w.Thaw(wire.Everything)
	hear(t, events, "e")
}

func TestWhoWasBlindMustListBeforeItWatchesAgain(t *testing.T) {
	w, f, client := lay(t)
	events, err := begin(t, client, "1")
	require.NoError(t, err)
	w.Blind("pods")
	_, open := <-events.ResultChan()
	require.False(t, open, "the watch is cut")
	_, err = begin(t, client, "1")
	require.Error(t, err)
	f.deeds()
	_, err = client.CoreV1().Pods("n").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	require.Error(t, err, "nor is a list that fills a cache let through")
	assert.Empty(t, f.deeds())
	_, _ = client.CoreV1().Pods("n").List(t.Context(), metav1.ListOptions{})
	assert.NotEmpty(t, f.deeds(), "a question past the caches is")
	w.See("pods")
	assert.Zero(t, w.Relists())
	_, err = begin(t, client, "1")
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	assert.Equal(t, 1, w.Relists())
	assert.Zero(t, w.Kept("d"), "nothing was held back")
	events, err = begin(t, client, "1")
	require.NoError(t, err)
	f.said <- "a"
	hear(t, events, "a")
	w.Cut("jobs")
	f.said <- "b"
	hear(t, events, "b")
	w.Cut(wire.Everything)
	_, open = <-events.ResultChan()
	require.False(t, open)
	_, err = begin(t, client, "1")
	require.NoError(t, err, "what was cut may go on from where it was")
}

func TestNothingIsReachedWhileTheAPIServerIsDown(t *testing.T) {
	w, f, client := lay(t)
	events, err := begin(t, client, "1")
	require.NoError(t, err)
	w.Down()
	_, open := <-events.ResultChan()
	require.False(t, open)
	_, err = client.BatchV1().Jobs("n").Update(t.Context(), job("a"), metav1.UpdateOptions{})
	require.True(t, cut(err), "%v", err)
	assert.Empty(t, f.deeds())
	assert.Empty(t, w.Writes(), "what nobody heard was no write")
	w.Up()
	_, err = client.BatchV1().Jobs("n").Update(t.Context(), job("a"), metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestAWriteThatIsHeldArrivesLateOrNever(t *testing.T) {
	for _, c := range []struct {
		name    string
		letGo   func(*wire.Wire)
		arrives bool
	}{{"released", (*wire.Wire).Release, true}, {"dropped", (*wire.Wire).Drop, false}} {
		t.Run(c.name, func(t *testing.T) {
			w, f, client := lay(t)
			held, done := make(chan struct{}), make(chan error, 1)
			w.OnHold(func() { close(held) })
			w.Plan(wire.Fault{Deed: wire.Hold, At: at(t, "delete jobs a 1")})
			go func() { done <- client.BatchV1().Jobs("n").Delete(context.Background(), "a", metav1.DeleteOptions{}) }()
			<-held
			require.Empty(t, f.deeds(), "it is on its way")
			c.letGo(w)
			err := <-done
			require.Equal(t, c.arrives, err == nil, "%v", err)
			require.Equal(t, c.arrives, len(f.deeds()) == 1)
		})
	}
}
