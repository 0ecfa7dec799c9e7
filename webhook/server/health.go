package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// healthHandler answers /healthz, which says that the process is there, and
// /readyz, which says that an API server that called now would be answered.
func (s *Server) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.ready(time.Now()); err != nil {
			say(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		text := "ok"
		if fault := s.certificate.Fault(); fault != nil {
			text += fmt.Sprintf("\nbut the key pair on disk cannot be served, certificate %s is kept: %v", s.certificate.Served().Serial, fault)
		}
		say(w, http.StatusOK, text)
	})
	return mux
}

// ready says what keeps reviews from being answered, nil when nothing does.
func (s *Server) ready(now time.Time) error {
	switch {
	case s.draining.Load():
		return errors.New("shutting down")
	case !s.serving.Load():
		return errors.New("reviews are not being served yet")
	}
	return s.certificate.Ready(now)
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	// A reader that is gone cannot be told.
	_, _ = fmt.Fprintln(w, text)
}
