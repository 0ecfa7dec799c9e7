package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// ServeHTTP passes one request on, or does what is planned.
func (w *Wire) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	asked, isResource := read(in.Method, in.URL.Path, in.URL.Query().Get("watch") == "true" || in.URL.Query().Get("watch") == "1")
	w.mu.Lock()
	down, blind := w.down, isResource && marked(w.blind, asked.resource)
	w.mu.Unlock()
	switch {
	case down:
		hangUp(out)
	case blind && fills(asked, in):
		refuse(out, apierrors.NewServiceUnavailable("nothing is told now"))
	case isResource && asked.verb == "watch":
		w.watch(out, in, asked)
	case isResource && asked.writes() && asked.resource != "leases":
		w.write(out, in, asked)
	default:
		body, err := io.ReadAll(in.Body) // a lease has one, and so has a question about rights
		if err != nil {
			hangUp(out)
			return
		}
		reply, err := w.forward(in, body)
		w.answer(out, reply, err)
	}
}

// fills is whether a list is one that a watch begins with: those look for a version, or page. A question past the caches
// does neither.
func fills(asked request, in *http.Request) bool {
	query := in.URL.Query()
	return asked.verb == "read" && asked.name == "" && (query.Has("resourceVersion") || query.Has("limit"))
}

// write meets a request for a change with the fault that is planned for it.
func (w *Wire) write(out http.ResponseWriter, in *http.Request, asked request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		hangUp(out) // the process went away in the middle of its sentence
		return
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Group: asked.group, Resource: asked.resource}, asked.name, errors.New("somebody else has written it meanwhile"))
	at := w.pointOf(asked, body)
	if w.refuses(at) {
		refuse(out, conflict)
		return
	}
	index, deed, kill, met := w.arrive(at)
	switch deed {
	case KillBefore:
		kill()
		hangUp(out)
		return
	case Conflict:
		w.answered(index, http.StatusConflict, false)
		refuse(out, conflict)
		return
	case Hold:
		if w.hold() {
			hangUp(out)
			return
		}
	case KillAfter, LoseReply, TimeOut:
	}
	// What was sent is done, whether or not the process lives to hear of it.
	reply, err := w.forward(in.WithContext(context.WithoutCancel(in.Context())), body)
	if err != nil {
		hangUp(out)
		return
	}
	committed := reply.code < 300
	if committed {
		met()
	}
	switch deed {
	case KillAfter:
		w.answered(index, 0, committed)
		kill()
		hangUp(out)
	case LoseReply:
		w.answered(index, 0, committed)
		hangUp(out)
	case TimeOut:
		w.answered(index, http.StatusGatewayTimeout, committed)
		refuse(out, apierrors.NewTimeoutError("request did not complete within requested timeout - context deadline exceeded", 0))
	case KillBefore, Conflict:
	case Hold:
		fallthrough
	default:
		w.answered(index, reply.code, committed)
		w.answer(out, reply, nil)
	}
}

// pointOf is the write that a request asks for. What is created tells its name itself; an event is known by what it is
// about and its reason, also where it is only counted again.
func (w *Wire) pointOf(asked request, body []byte) Point {
	at := Point{Verb: asked.verb, Resource: asked.resource, Name: asked.name}
	name, tells := named(body)
	if at.Name == "" {
		at.Name = name
	}
	if at.Event() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if tells != "" {
			w.events[at.Name] = tells
		}
		at.Name = w.events[at.Name]
	}
	if at.Name == "" {
		at.Name = "-"
	}
	return at
}

// named is the name of an object, and what it tells if it is an event: "images:UpgradeInitiated".
func named(body []byte) (name, tells string) {
	if object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		switch event := object.(type) {
		case *eventsv1.Event:
			return event.Name, event.Regarding.Name + ":" + event.Reason
		case *corev1.Event:
			return event.Name, event.InvolvedObject.Name + ":" + event.Reason
		}
		if accessor, err := meta.Accessor(object); err == nil {
			return accessor.GetName(), ""
		}
	}
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(body, &object) != nil {
		return "", ""
	}
	return object.Name, ""
}

// reply is a whole answer of the API server.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

func (w *Wire) forward(in *http.Request, body []byte) (reply, error) {
	response, err := w.send(in, body)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, fmt.Errorf("read the answer: %w", err)
	}
	return reply{code: response.StatusCode, header: response.Header, body: text}, nil
}

// send asks the API server.
func (w *Wire) send(in *http.Request, body []byte) (*http.Response, error) {
	request := in.Clone(in.Context())
	// Over a line without TLS a client keeps its token to itself.
	if token := w.config.BearerToken; token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Body, request.ContentLength = http.NoBody, int64(len(body))
	if len(body) > 0 {
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	request.RequestURI, request.URL.Scheme, request.URL.Host, request.Host = "", w.upstream.Scheme, w.upstream.Host, ""
	response, err := w.client.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("ask the API server: %w", err)
	}
	return response, nil
}

func (w *Wire) answer(out http.ResponseWriter, r reply, err error) {
	if err != nil {
		hangUp(out)
		return
	}
	maps.Copy(out.Header(), r.header)
	out.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
	out.WriteHeader(r.code)
	_, _ = out.Write(r.body) // who does not wait for the answer does not get it
}

// refuse answers as the API server refuses.
func refuse(out http.ResponseWriter, why *apierrors.StatusError) {
	status := why.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	text, err := json.Marshal(status)
	if err != nil {
		hangUp(out)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(int(status.Code))
	_, _ = out.Write(text)
}
