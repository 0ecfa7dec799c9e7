package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

// patience is how long a client waits for an answer before it counts the request as failed.
const patience = 30 * time.Second

// client sends requests one after the other, over a fresh connection each or over a kept one.
type client struct {
	name  string
	base  string
	http  *http.Client
	books *ledger.Ledger
}

func newClient(name, base string, keep bool, books *ledger.Ledger) *client {
	transport := &http.Transport{DisableKeepAlives: !keep, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}
	return &client{name: name, base: base, books: books, http: &http.Client{Transport: transport, Timeout: patience}}
}

// row is something that was created and must be found again.
type row struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// call is one request and what must come back.
type call struct {
	kind, method, path string
	header             map[string]string
	body               any
	want               int
	into               any
	// check refuses an answer that is well-formed and wrong.
	check func(http.Header) error
}

// do sends one request and books it. A transport error, another status than the wanted one and an answer that check
// refuses all count as failed.
func (c *client) do(ctx context.Context, one call) error {
	began := time.Now()
	header, err := c.once(ctx, one)
	took := time.Since(began)
	if err == nil && one.check != nil {
		err = one.check(header)
	}
	if err != nil {
		err = fmt.Errorf("%s, %s %s after %s: %w", c.name, one.method, one.path, took.Round(time.Millisecond), err)
	}
	c.books.Enter(time.Now(), one.kind, took, err)
	return err
}

func (c *client) once(ctx context.Context, one call) (http.Header, error) {
	var content io.Reader
	if one.body != nil {
		raw, err := json.Marshal(one.body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, one.method, c.base+one.path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range one.header {
		request.Header.Set(name, value)
	}
	// The library repeats a read whose connection was cut; a client without that would have seen a failure.
	attempts := 0
	request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { attempts++ }}))
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 8<<20))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if attempts > 1 {
		return nil, fmt.Errorf("the connection was cut %d time(s) before the answer came", attempts-1)
	}
	if response.StatusCode != one.want {
		return nil, fmt.Errorf("%s: %.200s", response.Status, bytes.TrimSpace(raw))
	}
	if err := json.Unmarshal(raw, one.into); err != nil {
		return nil, fmt.Errorf("read the answer: %w: %.200s", err, raw)
	}
	return response.Header, nil
}
