package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/c5c3/openstack-upgrade/certs/serving"
)

// ReviewPath is where the API server sends its reviews.
const ReviewPath = "/validate"

// Timeouts of one connection. The API server gives a call at most 30 seconds
// and keeps an idle connection for 90: ending one later than it does means
// that no call meets a connection that is just being closed. That goes for a
// connection without a call so far, too: clients open some in advance. Its
// first call is therefore awaited as long as any later one, and a body has its
// time from when the door begins to read it.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 5 * time.Second
	writeTimeout  = 15 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 8 << 10
	maxStreams    = 64
)

// Config is what Listen needs to know.
type Config struct {
	ListenAddress  string
	HealthAddress  string
	MetricsAddress string
	// EnableHTTP2 offers it beside HTTP/1.1. It is off otherwise, because one
	// connection of it can hold many calls and has been used to exhaust
	// servers.
	EnableHTTP2 bool
	// ShutdownDelay is how long calls are still taken after readiness is
	// withdrawn; ShutdownTimeout how long the last ones may then take.
	ShutdownDelay   time.Duration
	ShutdownTimeout time.Duration
	// Version is shown in the metrics.
	Version string
}

// Server has its ports and waits for Run.
type Server struct {
	config      Config
	log         logr.Logger
	certificate *serving.Follower

	review, health, metrics endpoint
	// serving is set while reviews are taken, draining from the first sign of
	// the end.
	serving, draining atomic.Bool
}

type endpoint struct {
	listener *crowd
	server   *http.Server
}

// Listen takes the three ports, so that a port in use is an error before
// anything runs.
func Listen(config Config, judge Judge, certificate *serving.Follower, log logr.Logger) (*Server, error) {
	s := &Server{config: config, log: log, certificate: certificate}
	measured := newMetrics(certificate, config.Version)
	for _, port := range []struct {
		name    string
		address string
		places  int
		to      *endpoint
		handler http.Handler
	}{
		{"reviews", config.ListenAddress, reviewPlaces, &s.review, newDoor(judge, measured, log, s.draining.Load)},
		{"health", config.HealthAddress, otherPlaces, &s.health, s.healthHandler()},
		{"metrics", config.MetricsAddress, otherPlaces, &s.metrics, measured.handler()},
	} {
		listener, err := net.Listen("tcp", port.address)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("listen for %s: %w", port.name, err)
		}
		crowd := newCrowd(listener, port.places, measured.crowds(port.name))
		*port.to = endpoint{listener: crowd, server: newHTTPServer(port.handler, log.WithName(port.name))}
		port.to.server.ConnState = crowd.follow
	}
	s.secure()
	return s, nil
}

// secure puts TLS in front of the reviews, and lets connections wait for them.
func (s *Server) secure() {
	s.review.server.ReadHeaderTimeout, s.review.server.ReadTimeout = idleTimeout, 0
	s.review.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate.GetCertificate}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(s.config.EnableHTTP2)
	s.review.server.Protocols = protocols
	s.review.server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: maxBody}
}

func newHTTPServer(handler http.Handler, log logr.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       connectionLog(log),
	}
}

// connectionLog keeps what single connections do wrong, such as a port scan
// that speaks no TLS, out of the log at its usual level.
func connectionLog(to logr.Logger) *log.Logger {
	return log.New(lineWriter(func(line string) { to.V(1).Info("connection", "problem", line) }), "", 0)
}

// ReviewAddress, HealthAddress and MetricsAddress are where the ports really
// are.
func (s *Server) ReviewAddress() string { return s.review.listener.Addr().String() }

// HealthAddress is where health is asked.
func (s *Server) HealthAddress() string { return s.health.listener.Addr().String() }

// MetricsAddress is where metrics are read.
func (s *Server) MetricsAddress() string { return s.metrics.listener.Addr().String() }

// Run serves until the context ends, then drains: readiness is withdrawn,
// calls are taken until the cluster has noticed, and the last ones finish. It
// returns nil when no call was cut.
func (s *Server) Run(ctx context.Context) error {
	// What serves must outlive the sign to stop, until the last call is done.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	failed := make(chan error, 4)
	start := func(name string, serve func() error) {
		running.Go(func() {
			if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", name, err)
			}
		})
	}
	start("certificate", func() error { return s.certificate.Run(alive) })
	start("health", func() error { return s.health.server.Serve(s.health.listener) })
	start("metrics", func() error { return s.metrics.server.Serve(s.metrics.listener) })
	start("reviews", func() error {
		s.serving.Store(true)
		defer s.serving.Store(false)
		return s.review.server.ServeTLS(s.review.listener, "", "")
	})
	s.log.Info("serving", "reviews", s.ReviewAddress(), "health", s.HealthAddress(), "metrics", s.MetricsAddress())

	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = s.drain(alive, failed)
	}
	stop()
	s.close()
	running.Wait()
	return err
}

func (s *Server) drain(ctx context.Context, failed <-chan error) error {
	s.draining.Store(true)
	s.log.Info("stopping: not ready any more, still answering", "for", s.config.ShutdownDelay.String())
	select {
	case err := <-failed:
		return err
	case <-time.After(s.config.ShutdownDelay):
	}
	s.log.Info("stopping: waiting for the last calls", "atMost", s.config.ShutdownTimeout.String())
	limited, cancel := context.WithTimeout(ctx, s.config.ShutdownTimeout)
	defer cancel()
	if err := s.review.server.Shutdown(limited); err != nil {
		return fmt.Errorf("drain: calls that were still open after %s have been cut", s.config.ShutdownTimeout)
	}
	s.log.Info("stopped")
	return nil
}

// close ends what still runs and frees the ports.
func (s *Server) close() {
	for _, e := range []endpoint{s.review, s.health, s.metrics} {
		if e.listener == nil {
			continue
		}
		// Closing what is closed already is an error of no interest here.
		_ = e.server.Close()
		_ = e.listener.Close()
	}
}

type lineWriter func(line string)

func (w lineWriter) Write(line []byte) (int, error) {
	w(string(line))
	return len(line), nil
}
