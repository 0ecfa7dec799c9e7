package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"syscall"
	"time"

	"github.com/c5c3/openstack-upgrade/test/drill/api"
	"github.com/c5c3/openstack-upgrade/test/drill/schema"
)

// serve runs the API until it is told to end.
func (p *program) serve(l line) (code int, err error) {
	how := p.how.API
	if how.IgnoreSigterm {
		signal.Stop(p.term)
		signal.Ignore(syscall.SIGTERM)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-p.term
		cancel()
	}()
	if how.Fail != "" && how.CrashAfter == 0 {
		return failed, errors.New(how.Fail)
	}
	pool, err := schema.Connect(p.how.Connection)
	if err != nil {
		return failed, err
	}
	defer pool.Close()
	if how.StartDelay > 0 {
		p.log("wait %s before it listens", how.StartDelay)
	}
	select {
	case <-ctx.Done():
		return terminated, errors.New("told to end before it served")
	case <-time.After(how.StartDelay):
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.socket)
	if err != nil {
		return failed, fmt.Errorf("listen on %s: %w", l.socket, err)
	}
	p.log("release %s serves on %s", p.Release, listener.Addr())
	server := &api.Server{Pool: pool, Release: p.release, Tag: p.Tag, How: how, Log: p.log}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	crash := make(<-chan time.Time)
	if how.CrashAfter > 0 {
		crash = time.After(how.CrashAfter)
	}
	select {
	case err := <-served:
		if err != nil {
			return failed, err
		}
		return 0, nil
	case <-crash:
		text := how.Fail
		if text == "" {
			text = "told to crash after " + how.CrashAfter.String()
		}
		return failed, errors.New(text)
	}
}
