package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// renewDeadline is how long a leader may go without renewing its lease and still write. Others wait half as long again
// before they take over, which is what a write may spend on its way.
const renewDeadline = 10 * time.Second

// errNotLeading is what a write meets after that.
var errNotLeading = errors.New("the lease has not been renewed in time, another replica may lead: nothing is written")

// fence stands between the controller and the API server, and lets nothing be written by a process that may have lost its
// lease. Leader election alone does not: a process that was paused, by a starved or a migrating machine, goes on where it
// stood, and has written what it once decided before it looks at the clock.
type fence struct {
	now func() time.Time

	mu      sync.Mutex
	renewed time.Time
}

// fenced is a way to the API server that only a leader may write on.
func fenced(config *rest.Config, now func() time.Time) *rest.Config {
	f := &fence{now: now}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return f.around(next) })
	return config
}

// around is the fence on one of several ways: they share what is known of the lease.
func (f *fence) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper{next, func(request *http.Request) (*http.Response, error) {
		switch request.Method {
		case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		default:
			return next.RoundTrip(request)
		}
		if isLease(request.URL.Path) {
			return f.renew(next, request)
		}
		if !f.leads() {
			return nil, errNotLeading
		}
		return next.RoundTrip(request)
	}}
}

// renew notes when a renewal that succeeded was begun, for others count from when they see it, which is later. To give the
// lease up is no renewal: nothing is written after it, and who does not hold it any more has none to give up.
func (f *fence) renew(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	begun := f.now()
	releases, err := givesUp(request)
	switch {
	case err != nil:
		return nil, err
	case releases && !f.leads():
		return nil, errNotLeading
	case releases:
		f.mu.Lock()
		f.renewed = time.Time{}
		f.mu.Unlock()
		return next.RoundTrip(request)
	}
	response, err := next.RoundTrip(request)
	if err == nil && response.StatusCode < http.StatusMultipleChoices {
		f.mu.Lock()
		f.renewed = begun
		f.mu.Unlock()
	}
	return response, err
}

// leads asks both clocks: that of the machine may have stood still while the world's went on.
func (f *fence) leads() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	return now.Sub(f.renewed) < renewDeadline && now.Round(0).Sub(f.renewed.Round(0)) < renewDeadline
}

// givesUp is whether a lease is written that names no holder.
func givesUp(request *http.Request) (bool, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return false, nil
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return false, fmt.Errorf("read the lease that is to be written: %w", err)
	}
	_ = request.Body.Close() // all of it is read
	request.Body = io.NopCloser(bytes.NewReader(body))
	object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return false, fmt.Errorf("understand the lease that is to be written: %w", err)
	}
	lease, is := object.(*coordinationv1.Lease)
	return is && ptr.Deref(lease.Spec.HolderIdentity, "") == "", nil
}

func isLease(path string) bool {
	return strings.HasPrefix(path, "/apis/coordination.k8s.io/") && strings.Contains(path, "/leases")
}

type roundTripper struct {
	next http.RoundTripper
	ask  func(*http.Request) (*http.Response, error)
}

// RoundTrip asks.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r.ask(request) }

// WrappedRoundTripper is for those who cancel a request.
func (r roundTripper) WrappedRoundTripper() http.RoundTripper { return r.next }
