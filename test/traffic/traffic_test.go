package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

// api is an Image API in memory; fault may answer in its place.
type api struct {
	mu     sync.Mutex
	images []row
	fault  func(n int, w http.ResponseWriter, r *http.Request) bool
	asked  int
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if a.fault != nil && a.fault(a.asked, w, r) {
		return
	}
	switch id, single := strings.CutPrefix(r.URL.Path, "/v2/images/"); {
	case r.Method == http.MethodPost:
		var made row
		_ = json.NewDecoder(r.Body).Decode(&made)
		made.ID = fmt.Sprintf("id-%d", len(a.images))
		a.images = append(a.images, made)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(made)
	case single:
		for _, image := range a.images {
			if image.ID == id {
				_ = json.NewEncoder(w).Encode(image)
				return
			}
		}
		http.NotFound(w, r)
	default:
		var found page
		for _, image := range a.images {
			if name := r.URL.Query().Get("name"); name == "" || name == image.Name {
				found.Images = append(found.Images, image)
			}
		}
		_ = json.NewEncoder(w).Encode(found)
	}
}

func drive(t *testing.T, a http.Handler, change func(*options)) (ledger.Summary, string) {
	t.Helper()
	server := httptest.NewServer(a)
	defer server.Close()
	o := options{api: imageAPI, url: server.URL, workers: 4, rate: 200, duration: 1200 * time.Millisecond, maxRequests: 100_000}
	if change != nil {
		change(&o)
	}
	var out bytes.Buffer
	return run(context.Background(), o, &out), out.String()
}

func TestAnAPIThatWorksFailsNothing(t *testing.T) {
	summary, out := drive(t, &api{}, nil)
	if !summary.Good() || summary.Sent < 50 || summary.Created == 0 {
		t.Errorf("%s; %s", summary, strings.Join(summary.Lines(), "\n"))
	}
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) < 2 || !strings.Contains(lines[len(lines)-1], `"final":true`) {
		t.Errorf("it wrote %s", out)
	}
}

func TestEveryKindOfFailureCounts(t *testing.T) {
	for name, fault := range map[string]func(w http.ResponseWriter){
		"an error":                 func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"another success":          func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) },
		"an answer cut short":      func(w http.ResponseWriter) { w.Header().Set("Content-Length", "99"); fmt.Fprint(w, `{"id"`) },
		"a connection that is cut": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"the wrong image":          func(w http.ResponseWriter) { fmt.Fprint(w, `{"id":"other","name":"other"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			summary, _ := drive(t, &api{fault: func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n != 10 {
					return false
				}
				fault(w)
				return true
			}}, nil)
			if summary.Failed != 1 || len(summary.Failures) == 0 {
				t.Errorf("%s: %+v", summary, summary.Failures)
			}
		})
	}
}

func TestARowThatVanishesIsLost(t *testing.T) {
	a := &api{}
	a.fault = func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("limit") != "" {
			a.images = a.images[1:]
		}
		return false
	}
	summary, _ := drive(t, a, nil)
	if summary.Lost != 1 || summary.Good() {
		t.Errorf("%d lost: %+v", summary.Lost, summary.Failures)
	}
}

func TestItEndsByItself(t *testing.T) {
	began := time.Now()
	summary, _ := drive(t, &api{}, func(o *options) { o.maxRequests, o.duration = 20, time.Hour })
	if took := time.Since(began); took > 10*time.Second || summary.Sent < 20 {
		t.Errorf("%s in %s", summary, took)
	}
}

func TestNonsenseIsRefusedInOneLine(t *testing.T) {
	for _, line := range []string{"", "--url=nowhere", "--url=http://a --rate=0", "--url=http://a --workers=0", "--url=http://a --duration=0s", "--what",
		"--url=http://a --api=compute", "--url=http://a --api=identity"} {
		if _, err := parse(strings.Fields(line)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestAServiceIsLookedUpOnceAndAskedAtItsAddress(t *testing.T) {
	for given, want := range map[string]string{
		"http://localhost:9292":      "http://(127.0.0.1|\\[::1\\]):9292",
		"http://localhost/v3":        "http://(127.0.0.1|\\[::1\\])/v3",
		"http://10.96.0.7:5000/v3":   "http://10.96.0.7:5000/v3",
		"http://[fd00::7]:5000/path": `http://\[fd00::7\]:5000/path`,
	} {
		found, err := located(t.Context(), given)
		require.NoError(t, err)
		assert.Regexp(t, "^"+want+"$", found)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := located(ended, "http://nowhere.invalid:9292")
	require.Error(t, err)
}
