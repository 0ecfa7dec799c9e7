package server

import (
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
// bodies wait for each other and the memory stays flat; small ones pass them
// by. Memory for a body is taken as a whole and used again, because a buffer
// that grows leaves as much behind as it holds.
const (
	maxBody     = 3 << 20
	smallBody   = 32 << 10
	largePlaces = 2
	placeWait   = 2 * time.Second
	largeTime   = time.Second
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
	small    sync.Pool
	large    chan []byte
}

func newDoor(judge Judge, m *metrics, log logr.Logger, draining func() bool) http.Handler {
	d := &door{judge: judge, metrics: m, log: log, draining: draining,
		small: sync.Pool{New: func() any { return new([smallBody]byte) }},
		large: make(chan []byte, largePlaces)}
	for range largePlaces {
		d.large <- nil // made when the first one comes
	}
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
	small := d.small.Get().(*[smallBody]byte)
	defer d.small.Put(small)
	body, leave, away := d.read(small, w, r)
	defer leave()
	if away != nil {
		d.turnAway(w, r, away)
		return
	}
	answer, decision, err := d.judge.Review(body)
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

// read takes the body in: into the small space when it fits, otherwise into a
// large one when its turn comes. leave gives that back and is never nil.
func (d *door) read(small *[smallBody]byte, w http.ResponseWriter, r *http.Request) (body []byte, leave func(), away *turnedAway) {
	leave = func() {}
	patient := http.NewResponseController(w)
	// Where it cannot be set there is no connection to hold up.
	_ = patient.SetReadDeadline(time.Now().Add(readTimeout))
	content := http.MaxBytesReader(w, r.Body, maxBody)
	read := 0
	if r.ContentLength <= smallBody {
		var ended bool
		var err error
		if read, ended, err = fill(small[:], content); err != nil {
			return nil, leave, unreadable(err)
		}
		if ended {
			return small[:read], leave, nil
		}
	}
	var large []byte
	select {
	case large = <-d.large:
	case <-time.After(placeWait):
		return nil, leave, &turnedAway{http.StatusServiceUnavailable, Busy, "too many large bodies at a time, try again"}
	}
	if large == nil {
		// One more than is allowed, so that the end is seen.
		large = make([]byte, maxBody+1)
	}
	leave = func() { d.large <- large }
	_ = patient.SetReadDeadline(time.Now().Add(largeTime))
	copy(large, small[:read])
	more, _, err := fill(large[read:], content)
	if err != nil {
		return nil, leave, unreadable(err)
	}
	return large[:read+more], leave, nil
}

// fill reads until the space is full or the content has ended.
func fill(space []byte, content io.Reader) (read int, ended bool, err error) {
	for read < len(space) {
		n, err := content.Read(space[read:])
		read += n
		switch {
		case errors.Is(err, io.EOF):
			return read, true, nil
		case err != nil:
			return read, false, err
		}
	}
	return read, false, nil
}

func unreadable(err error) *turnedAway {
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &turnedAway{http.StatusRequestTimeout, TooSlow, "the body did not arrive in time"}
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
