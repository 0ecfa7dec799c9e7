package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// server answers everything with one code and counts what comes.
type server struct{ code, asked int }

// RoundTrip answers.
func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	s.asked++
	return &http.Response{StatusCode: s.code, Body: http.NoBody}, nil
}

func TestNothingIsWrittenOnceTheLeaseMayBeLost(t *testing.T) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := &fence{now: func() time.Time { return clock }}
	api := &server{code: http.StatusOK}
	way := f.around(api)
	send := func(method, path, body string) error {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "https://api"+path, strings.NewReader(body))
		require.NoError(t, err)
		response, err := way.RoundTrip(request)
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		return err
	}
	const lease, jobs = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", "/apis/batch/v1/namespaces/n/jobs"
	held := func(by string) string {
		return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"},"spec":{"holderIdentity":"` + by + `"}}`
	}
	ask := func(method, path string) error {
		t.Helper()
		if path == lease {
			return send(method, path, held("me"))
		}
		return send(method, path, "")
	}

	require.ErrorIs(t, ask(http.MethodPost, jobs), errNotLeading, "before the lease is held")
	require.NoError(t, ask(http.MethodGet, jobs), "reading is free")
	require.Equal(t, 1, api.asked)

	require.NoError(t, ask(http.MethodPut, lease))
	require.NoError(t, ask(http.MethodPost, jobs))
	clock = clock.Add(renewDeadline - time.Second)
	require.NoError(t, ask(http.MethodDelete, jobs+"/j"))

	api.code = http.StatusConflict
	require.NoError(t, ask(http.MethodPut, lease))
	clock = clock.Add(time.Second)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		require.ErrorIs(t, ask(method, jobs), errNotLeading, "a renewal that was refused is none")
	}
	require.NoError(t, ask(http.MethodGet, jobs))

	api.code = http.StatusOK
	require.NoError(t, ask(http.MethodPut, lease))
	require.NoError(t, ask(http.MethodPost, jobs))

	require.NoError(t, send(http.MethodPut, lease, held("")), "the lease is given up")
	require.ErrorIs(t, ask(http.MethodPost, jobs), errNotLeading, "to give it up is no renewal")
	asked := api.asked
	require.ErrorIs(t, send(http.MethodPut, lease, held("")), errNotLeading, "nobody takes it from the next leader")
	require.Equal(t, asked, api.asked)
}
