package stage

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// EditsNamespace holds the objects that Edits edits: one for what is only tried, and several for what is written, since
// two writes at a time to one object make the API server try again.
const EditsNamespace = "edits"

const written = 8

// editors is how many edits may be under way at a time: more than ever are when all goes well, so that slow answers do
// not lower the rate.
const editors = 32

// Edits is people who edit objects without pause, so that the webhook is asked about each edit: of ten, seven are dry
// runs that must be admitted, two are dry runs that must be refused with the reason, and one is written.
type Edits struct {
	stage   *Stage
	client  client.Client
	stop    context.CancelFunc
	all     sync.WaitGroup
	began   time.Time
	asked   float64
	sent    atomic.Int64
	skipped atomic.Int64

	mu     sync.Mutex
	failed []EditFailure
	took   []time.Duration
}

// EditFailure is an edit that was not answered as it had to be.
type EditFailure struct {
	At    time.Time
	Words string
}

// EditSummary is what came of the edits. Judged is how many calls of the webhook the API server has counted meanwhile.
type EditSummary struct {
	Sent, Judged int
	Failed       []EditFailure
	Lasted       time.Duration
	P50, P99     time.Duration
	Longest      time.Duration
}

// String says it in one line.
func (e EditSummary) String() string {
	return fmt.Sprintf("%d edits sent in %.0f s (%.0f a second), %d judged, %d failed; took p50 %.1f ms, p99 %.1f ms, longest %.0f ms",
		e.Sent, e.Lasted.Seconds(), float64(e.Sent)/e.Lasted.Seconds(), e.Judged, len(e.Failed),
		1000*e.P50.Seconds(), 1000*e.P99.Seconds(), 1000*e.Longest.Seconds())
}

// StartEdits makes the objects and begins. The controller should not be there: every tenth edit is a real one, and
// what it would make of them is not what this is about.
func (s *Stage) StartEdits(ctx context.Context, perSecond int) (*Edits, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	// Every edit is answered with the warning that its tag names no release.
	config.QPS, config.UserAgent, config.WarningHandler = -1, "edits", rest.NoWarnings{}
	e := &Edits{stage: s}
	if e.client, err = client.New(config, client.Options{Scheme: s.Client.Scheme()}); err != nil {
		return nil, fmt.Errorf("make a client for the edits: %w", err)
	}
	err = s.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: EditsNamespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create namespace %s: %w", EditsNamespace, err)
	}
	manifests := Glance{Namespace: EditsNamespace, Name: "tried", Release: ReleaseBefore, Tag: TagBefore}.Manifest()
	for i := range written {
		manifests += "---\n" + Glance{Namespace: EditsNamespace, Name: fmt.Sprintf("written-%d", i), Release: ReleaseBefore, Tag: TagBefore}.Manifest()
	}
	if err := s.do(ctx, manifests, "apply", "-f", "-"); err != nil {
		return nil, err
	}
	if e.asked, err = s.webhookCalls(ctx); err != nil {
		return nil, err
	}
	ctx, e.stop = context.WithCancel(ctx)
	e.began = time.Now()
	e.all.Go(func() { e.send(ctx, perSecond) })
	return e, nil
}

func (e *Edits) send(ctx context.Context, perSecond int) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	places := make(chan struct{}, editors)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case places <- struct{}{}:
			e.all.Go(func() {
				defer func() { <-places }()
				e.edit(context.WithoutCancel(ctx), n)
			})
		default:
			e.skipped.Add(1)
		}
	}
}

func (e *Edits) edit(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	name, tag, options := "tried", fmt.Sprintf("edit-%d", n), []client.PatchOption{client.DryRunAll}
	refused := n%5 == 0
	switch {
	case refused:
		tag = ReleaseAfter
	case n%10 == 9:
		name, options = fmt.Sprintf("written-%d", n/10%written), nil
	}
	began := time.Now()
	err := e.client.Patch(ctx, &v1alpha1.Glance{ObjectMeta: metav1.ObjectMeta{Namespace: EditsNamespace, Name: name}},
		client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"image":{"tag":%q}}}`, tag))), options...)
	took := time.Since(began)
	e.sent.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.took = append(e.took, took)
	switch {
	case refused && err == nil:
		e.failed = append(e.failed, EditFailure{began, "admitted, and had to be refused: tag " + tag})
	case refused && apierrors.IsInvalid(err) && strings.Contains(err.Error(), string(upgrade.ImageReleaseMismatch)):
	case err != nil:
		e.failed = append(e.failed, EditFailure{began, err.Error()})
	}
}

// Stop ends it when the last edit has been answered, and sums up.
func (e *Edits) Stop(ctx context.Context) (EditSummary, error) {
	e.stop()
	e.all.Wait()
	summary := EditSummary{Sent: int(e.sent.Load()), Failed: e.failed, Lasted: time.Since(e.began)}
	if skipped := e.skipped.Load(); skipped > 0 {
		e.stage.Say("%d edits were not sent because %d were waiting for an answer", skipped, editors)
	}
	slices.Sort(e.took)
	if n := len(e.took); n > 0 {
		summary.P50, summary.P99, summary.Longest = e.took[n/2], e.took[n*99/100], e.took[n-1]
	}
	asked, err := e.stage.webhookCalls(ctx)
	summary.Judged = int(math.Round(asked - e.asked))
	return summary, err
}

// hookName is that of the shipped configuration's one entry.
const hookName = "openstack-upgrade-webhook.openstack.c5c3.io"

var countedCall = regexp.MustCompile(`(?m)^apiserver_admission_webhook_request_total\{[^}]*name="` + regexp.QuoteMeta(hookName) + `"[^}]*\} (\S+)$`)

// webhookCalls is how often the API server has called the webhook since it began, by its own metrics.
func (s *Stage) webhookCalls(ctx context.Context) (float64, error) {
	text, err := s.Kubectl(ctx, "", "get", "--raw", "/metrics")
	if err != nil {
		return 0, fmt.Errorf("ask the API server for its metrics: %w", err)
	}
	calls := 0.0
	for _, found := range countedCall.FindAllStringSubmatch(text, -1) {
		count, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return 0, fmt.Errorf("read the API server's metrics: %w", err)
		}
		calls += count
	}
	return calls, nil
}
