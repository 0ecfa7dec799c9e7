package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
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

type row struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type page struct {
	Images []row  `json:"images"`
	Next   string `json:"next"`
}

func (c *client) create(ctx context.Context, name string) (made row, err error) {
	body := map[string]string{"name": name, "disk_format": "raw", "container_format": "bare"}
	err = c.do(ctx, "create", http.MethodPost, "/v2/images", body, http.StatusCreated, &made, func() error {
		if made.ID == "" || made.Name != name {
			return fmt.Errorf("asked for an image %s and got %+v", name, made)
		}
		return nil
	})
	return made, err
}

func (c *client) read(ctx context.Context, kind string, wanted row) error {
	var found row
	return c.do(ctx, kind, http.MethodGet, "/v2/images/"+wanted.ID, nil, http.StatusOK, &found, func() error {
		if found != wanted {
			return fmt.Errorf("asked for %+v and got %+v", wanted, found)
		}
		return nil
	})
}

func (c *client) list(ctx context.Context, wanted row) error {
	var found page
	return c.do(ctx, "list", http.MethodGet, "/v2/images?name="+url.QueryEscape(wanted.Name), nil, http.StatusOK, &found, func() error {
		if len(found.Images) != 1 || found.Images[0] != wanted {
			return fmt.Errorf("%s is not in its list: %+v", wanted.Name, found.Images)
		}
		return nil
	})
}

// do sends one request and books it. A transport error, another status than the wanted one and an answer that check
// refuses all count as failed.
func (c *client) do(ctx context.Context, kind, method, path string, body any, want int, into any, check func() error) error {
	began := time.Now()
	err := c.once(ctx, method, path, body, want, into)
	took := time.Since(began)
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		err = fmt.Errorf("%s, %s %s after %s: %w", c.name, method, path, took.Round(time.Millisecond), err)
	}
	c.books.Enter(time.Now(), kind, took, err)
	return err
}

func (c *client) once(ctx context.Context, method, path string, body any, want int, into any) error {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	// The library repeats a read whose connection was cut; a client without that would have seen a failure.
	attempts := 0
	request = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { attempts++ }}))
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 8<<20))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if attempts > 1 {
		return fmt.Errorf("the connection was cut %d time(s) before the answer came", attempts-1)
	}
	if response.StatusCode != want {
		return fmt.Errorf("%s: %.200s", response.Status, bytes.TrimSpace(raw))
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the answer: %w: %.200s", err, raw)
	}
	return nil
}
