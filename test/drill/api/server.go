// Package api is the part of the Image API that a client of the drill needs, served the way uWSGI serves it: a
// connection for each request, and on SIGTERM no new ones while the open requests come to their end.
package api

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/c5c3/openstack-upgrade/test/drill/schema"
	"github.com/c5c3/openstack-upgrade/test/drill/settings"
)

// Server serves images the way one release reads and writes them.
type Server struct {
	Pool    *sql.DB
	Release *schema.Release
	Tag     string
	How     settings.API
	Log     func(format string, args ...any)
}

// Handler routes requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthcheck", s.healthcheck)
	mux.HandleFunc("GET /{$}", s.versions)
	mux.HandleFunc("GET /drill/verify", s.verify)
	mux.Handle("POST /v2/images", s.paced(s.create))
	mux.Handle("GET /v2/images", s.paced(s.list))
	mux.Handle("GET /v2/images/{id}", s.paced(s.show))
	mux.Handle("PATCH /v2/images/{id}", s.paced(s.change))
	mux.Handle("DELETE /v2/images/{id}", s.paced(s.remove))
	return mux
}

// Serve answers on the listener until ctx ends and everything that was begun has been answered.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: time.Minute}
	// A kept connection could be closed in the very moment in which a client uses it again.
	server.SetKeepAlivesEnabled(false)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.Log("told to end: accept nothing more and wait for open requests")
	draining, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if s.How.Drain > 0 {
		draining, cancel = context.WithTimeout(draining, s.How.Drain)
	}
	defer cancel()
	began := time.Now()
	if err := server.Shutdown(draining); err != nil {
		s.Log("cut the requests that are still open after %s", s.How.Drain)
		return errors.Join(err, server.Close())
	}
	s.Log("the last request ended after %s", time.Since(began).Round(time.Millisecond))
	if s.How.Linger > 0 {
		s.Log("linger for %s", s.How.Linger)
		time.Sleep(s.How.Linger)
	}
	return nil
}

// problem is an answer that is no success.
type problem struct {
	status int
	err    error
}

func (p *problem) Error() string { return p.err.Error() }

func refuse(status int, format string, args ...any) error {
	return &problem{status, fmt.Errorf(format, args...)}
}

// paced answers with what answer returns: a problem by its status, everything else as a fault of the server, with the
// words of the database.
func (s *Server) paced(answer func(r *http.Request) (status int, body any, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.pause(r); err != nil {
			s.reply(w, http.StatusBadRequest, map[string]string{"message": err.Error()})
			return
		}
		status, body, err := answer(r)
		if err != nil {
			status = http.StatusInternalServerError
			var known *problem
			if errors.As(err, &known) {
				status = known.status
			} else {
				s.Log("%s %s: %s", r.Method, r.URL.Path, err)
			}
			body = map[string]string{"message": err.Error()}
		}
		s.reply(w, status, body)
	})
}

// pause holds a request open before it touches the database, as an upload does whose content is still on its way.
func (s *Server) pause(r *http.Request) error {
	slow := s.How.RequestDelay
	for _, asked := range []string{r.URL.Query().Get("slow"), r.Header.Get("X-Drill-Slow")} {
		if asked == "" {
			continue
		}
		d, err := time.ParseDuration(asked)
		if err != nil || d < 0 {
			return fmt.Errorf("slow=%.40q is no duration like 30s", asked)
		}
		slow += d
	}
	select {
	case <-r.Context().Done():
		return r.Context().Err()
	case <-time.After(slow):
	}
	if word := r.URL.Query().Get("hold"); word != "" {
		s.Log("%s %s is held until the word %s is given", r.Method, r.URL.Path, word)
		return schema.Await(r.Context(), s.Pool, word, s.Log)
	}
	return nil
}

func (s *Server) reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("X-Drill-Release", s.Release.Name)
	w.Header().Set("X-Drill-Tag", s.Tag)
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone reads no complaint
}

// healthcheck does not touch the database, as Glance's does not: a pod is Ready with a schema that it cannot read.
func (s *Server) healthcheck(w http.ResponseWriter, _ *http.Request) {
	if s.How.Unready {
		s.reply(w, http.StatusServiceUnavailable, map[string]string{"message": "told to be unready"})
		return
	}
	s.reply(w, http.StatusOK, "OK")
}

func (s *Server) versions(w http.ResponseWriter, _ *http.Request) {
	s.reply(w, http.StatusOK, map[string]string{"release": s.Release.Name, "tag": s.Tag})
}

func (s *Server) verify(w http.ResponseWriter, r *http.Request) {
	conn, err := s.Pool.Conn(r.Context())
	if err == nil {
		defer conn.Close()
		var report schema.Report
		if report, err = schema.Verify(r.Context(), conn); err == nil {
			s.reply(w, http.StatusOK, report)
			return
		}
	}
	s.reply(w, http.StatusInternalServerError, map[string]string{"message": err.Error()})
}
