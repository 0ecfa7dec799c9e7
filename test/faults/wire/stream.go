package wire

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// initialEnd marks the end of what was there when a watch began, in every encoding.
var initialEnd = []byte("k8s.io/initial-events-end")

// stream is one watch.
type stream struct {
	resource string
	cut      context.CancelFunc
	// initial is that it still tells what was there when it began, which is never held back.
	initial bool
	// said is the end of what was passed on, as long as a mark; pending is what comes next.
	said    []byte
	pending []byte
	ended   bool
}

// watch relays a watch, event by event as they come, unless they are held back.
func (w *Wire) watch(out http.ResponseWriter, in *http.Request, asked request) {
	query := in.URL.Query()
	initial := query.Get("sendInitialEvents") == "true"
	w.mu.Lock()
	blind := marked(w.blind, asked.resource)
	if blind {
		w.missed[asked.resource] = true
	}
	outdated := !blind && w.outdated[asked.resource]
	if outdated {
		delete(w.outdated, asked.resource)
		w.relists++
	}
	w.mu.Unlock()
	switch {
	case blind:
		refuse(out, apierrors.NewServiceUnavailable("nothing is told now"))
		return
	case outdated && !initial: // who begins with what is there lists anew by that
		refuse(out, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	ctx, cut := context.WithCancel(in.Context())
	defer cut()
	// Packed, a stream would not show where what was there ends and what happens begins.
	in = in.Clone(ctx)
	in.Header.Del("Accept-Encoding")
	response, err := w.send(in, nil)
	if err != nil {
		hangUp(out)
		return
	}
	defer response.Body.Close()
	maps.Copy(out.Header(), response.Header)
	out.WriteHeader(response.StatusCode)
	s := &stream{resource: asked.resource, cut: cut, initial: initial}
	w.mu.Lock()
	w.streams[s] = struct{}{}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.streams, s)
		w.mu.Unlock()
	}()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed.Broadcast()
	})
	go w.listen(s, response.Body)
	flusher := http.NewResponseController(out)
	for flusher.Flush() == nil { // the head at once, then each piece
		text, more := w.next(ctx, s)
		if !more {
			if ctx.Err() != nil {
				hangUp(out)
			}
			return
		}
		if _, err := out.Write(text); err != nil {
			return
		}
	}
}

// listen takes everything that the API server says, so that it never finds a slow listener.
func (w *Wire) listen(s *stream, from io.Reader) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		w.mu.Lock()
		s.pending = append(s.pending, chunk[:n]...)
		s.ended = err != nil
		if n > 0 && !s.initial && marked(w.frozen, s.resource) {
			w.kept = append(w.kept, chunk[:n]...)
		}
		w.changed.Broadcast()
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// next waits for something to be passed on.
func (w *Wire) next(ctx context.Context, s *stream) (text []byte, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ctx.Err() == nil {
		held := marked(w.frozen, s.resource) && !s.initial
		switch {
		case len(s.pending) > 0 && !held:
			text, s.pending = s.pending, nil
			s.said = append(s.said, text...)
			s.initial = s.initial && !bytes.Contains(s.said, initialEnd)
			s.said = s.said[max(0, len(s.said)-len(initialEnd)):]
			return text, true
		case s.ended && !held:
			return nil, false
		}
		w.changed.Wait()
	}
	return nil, false
}

// cut ends streams; the lock is held.
func (w *Wire) cut(resources []string) {
	for s := range maps.Keys(w.streams) {
		if slices.Contains(resources, s.resource) || slices.Contains(resources, Everything) {
			w.missed[s.resource] = w.missed[s.resource] || marked(w.blind, s.resource)
			s.cut()
		}
	}
}
