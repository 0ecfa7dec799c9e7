package main

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
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
	return roundTripper(func(request *http.Request) (*http.Response, error) {
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
	})
}

// renew notes when a renewal that succeeded was begun, for others count from when they see it, which is later.
func (f *fence) renew(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	begun := f.now()
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

func isLease(path string) bool {
	return strings.HasPrefix(path, "/apis/coordination.k8s.io/") && strings.Contains(path, "/leases")
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip asks.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
