package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// What a body may cost. Nearly every review is small and is read at once. A
// large one needs one of a few places, so that many senders of large or slow
// bodies wait for each other and the memory stays flat; small ones pass them by.
const (
	maxBody     = 3 << 20
	smallBody   = 64 << 10
	largePlaces = 4
	placeWait   = 2 * time.Second
)

// Reasons to turn a request away at the door, before there is a review.
const (
	WrongMethod    admission.Reason = "WrongMethod"
	WrongMediaType admission.Reason = "WrongMediaType"
	TooLarge       admission.Reason = "TooLarge"
	TooSlow        admission.Reason = "TooSlow"
	Unreadable     admission.Reason = "Unreadable"
	Busy           admission.Reason = "Busy"
	Bug            admission.Reason = "Bug"
)

// Judge answers one review, or says why the body holds none.
type Judge interface {
	Review(body []byte) (*admissionv1.AdmissionReview, admission.Decision, error)
}

// door takes reviews from the network to the judge and answers back.
type door struct {
	judge    Judge
	metrics  *metrics
	log      logr.Logger
	draining func() bool
	buffers  sync.Pool
	large    chan struct{}
}

func newDoor(judge Judge, m *metrics, log logr.Logger, draining func() bool) http.Handler {
	d := &door{judge: judge, metrics: m, log: log, draining: draining,
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
		large:   make(chan struct{}, largePlaces)}
	mux := http.NewServeMux()
	mux.HandleFunc(ReviewPath, d.review)
	return mux
}

// turnedAway is a request that never became a review.
type turnedAway struct {
	code    int
	reason  admission.Reason
	message string
}

func (d *door) review(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	defer d.catch(w, r)
	if d.draining() {
		// The caller's next call then goes to another replica.
		w.Header().Set("Connection", "close")
	}
	if away := wrongRequest(r); away != nil {
		d.turnAway(w, r, away)
		return
	}
	buffer := d.buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= 2*smallBody {
			buffer.Reset()
			d.buffers.Put(buffer)
		}
	}()
	leave, away := d.read(buffer, w, r)
	defer leave()
	if away != nil {
		d.turnAway(w, r, away)
		return
	}
	answer, decision, err := d.judge.Review(buffer.Bytes())
	if err != nil {
		d.turnAway(w, r, &turnedAway{http.StatusBadRequest, decision.Reason, err.Error()})
		return
	}
	d.answer(w, answer)
	d.metrics.count(decision)
	d.metrics.took(time.Since(began))
	d.tell(decision, answer)
}

func wrongRequest(r *http.Request) *turnedAway {
	if r.Method != http.MethodPost {
		return &turnedAway{http.StatusMethodNotAllowed, WrongMethod, "send an AdmissionReview with POST"}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return &turnedAway{http.StatusUnsupportedMediaType, WrongMediaType, "send the AdmissionReview as application/json"}
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	return nil
}

func tooLarge() *turnedAway {
	return &turnedAway{http.StatusRequestEntityTooLarge, TooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody)}
}

// read fills the buffer with the body. leave gives the place of a large body
// back and is never nil.
func (d *door) read(buffer *bytes.Buffer, w http.ResponseWriter, r *http.Request) (leave func(), away *turnedAway) {
	leave = func() {}
	body := http.MaxBytesReader(w, r.Body, maxBody)
	if r.ContentLength <= smallBody {
		if read, err := io.CopyN(buffer, body, smallBody); err != nil || read < smallBody {
			if errors.Is(err, io.EOF) {
				return leave, nil
			}
			return leave, unreadable(err)
		}
	}
	select {
	case d.large <- struct{}{}:
		leave = func() { <-d.large }
	case <-time.After(placeWait):
		return leave, &turnedAway{http.StatusServiceUnavailable, Busy, "too many large bodies at a time, try again"}
	}
	if size := r.ContentLength; size > smallBody {
		buffer.Grow(int(size) + bytes.MinRead)
	}
	if _, err := buffer.ReadFrom(body); err != nil {
		return leave, unreadable(err)
	}
	return leave, nil
}

func unreadable(err error) *turnedAway {
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &turnedAway{http.StatusRequestTimeout, TooSlow, fmt.Sprintf("the body did not arrive within %s", readTimeout)}
	}
	return &turnedAway{http.StatusBadRequest, Unreadable, "the body ended early"}
}

func (d *door) turnAway(w http.ResponseWriter, r *http.Request, away *turnedAway) {
	d.metrics.count(admission.Decision{Kind: admission.Other, Operation: admission.Other, Verdict: admission.Failed, Reason: away.reason})
	d.log.V(1).Info("turned away", "reason", away.reason, "message", away.message, "from", r.RemoteAddr)
	say(w, away.code, away.message)
}

func (d *door) answer(w http.ResponseWriter, review *admissionv1.AdmissionReview) {
	text, err := json.Marshal(review)
	if err != nil {
		panic(fmt.Errorf("encode answer: %w", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	// A caller that is gone has no use for the answer.
	_, _ = w.Write(text)
}

// tell logs what a person may be asked about: refusals and errors always, the
// rest when details are wanted.
func (d *door) tell(decision admission.Decision, answer *admissionv1.AdmissionReview) {
	log := d.log
	switch decision.Verdict {
	case admission.Allowed:
		log = log.V(1)
		if !log.Enabled() {
			return
		}
	case admission.Denied, admission.Failed:
	}
	values := []any{"kind", decision.Kind, "namespace", decision.Namespace, "name", decision.Name,
		"operation", decision.Operation, "dryRun", decision.DryRun, "reason", decision.Reason, "uid", decision.UID}
	if result := answer.Response.Result; result != nil {
		values = append(values, "message", result.Message)
	}
	log.Info(string(decision.Verdict), values...)
}

// catch turns a bug into an error answer, which the API server takes as no
// admission. Where it happened is for the log alone.
func (d *door) catch(w http.ResponseWriter, r *http.Request) {
	found := recover()
	if found == nil {
		return
	}
	d.metrics.count(admission.Decision{Kind: admission.Other, Operation: admission.Other, Verdict: admission.Failed, Reason: Bug})
	d.log.Error(fmt.Errorf("%v", found), "a bug in the webhook kept a review from being answered", "from", r.RemoteAddr)
	d.log.V(1).Info("where the bug is", "stack", string(debug.Stack()))
	say(w, http.StatusInternalServerError, "a bug in the webhook kept this review from being answered; its log says more")
}
