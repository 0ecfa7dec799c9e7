package harness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// auditPolicy makes the API server write down every request for a resource, and the question by which fence finds out
// that it has written down all that came before. Other paths are discovery and health.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  nonResourceURLs: ["/version"]
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
`

// Actor is who asks something of the API server. An empty field is anyone; Agent is the beginning of the user agent.
type Actor struct{ User, Agent string }

// SystemController is one controller of the controller manager, such as "job-controller".
func SystemController(name string) Actor {
	return Actor{User: "system:serviceaccount:kube-system:" + name}
}

// Call is one request as the API server saw it. A watch is one call, however long it lasts.
type Call struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
	User, Agent                                         string
	Code                                                int
	// Forbidden is that it was refused for lack of a right.
	Forbidden bool
	At        time.Time
}

// Calls are requests in the order in which they were answered.
type Calls []Call

// Mark is a moment in the audit log.
type Mark int64

// Mark is now: every call that has been answered lies before it.
func (e *Env) Mark(t testing.TB) Mark {
	t.Helper()
	end, err := e.fence(t.Context())
	if err != nil {
		t.Fatalf("mark the audit log: %v", err)
	}
	return Mark(end)
}

// CallsSince lists what the actor has asked since the mark.
func (e *Env) CallsSince(t testing.TB, mark Mark, actor Actor) Calls {
	t.Helper()
	if _, err := e.fence(t.Context()); err != nil {
		t.Fatalf("read the audit log: %v", err)
	}
	calls, err := e.calls(mark, actor)
	if err != nil {
		t.Fatalf("read the audit log: %v", err)
	}
	return calls
}

// AllCalls lists what the actor has asked since the world began.
func (e *Env) AllCalls(ctx context.Context, actor Actor) (Calls, error) {
	if _, err := e.fence(ctx); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return e.calls(0, actor)
}

func (e *Env) calls(mark Mark, actor Actor) (Calls, error) {
	text, err := e.auditText(int64(mark))
	if err != nil {
		return nil, err
	}
	var calls Calls
	for text := range bytes.Lines(text) {
		var line auditLine
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("%w in %q", err, text)
		}
		if call, answered := line.call(); answered && actor.made(call) {
			calls = append(calls, call)
		}
	}
	return calls, nil
}

func (a Actor) made(c Call) bool {
	return (a.User == "" || a.User == c.User) && strings.HasPrefix(c.Agent, a.Agent)
}

// Where keeps the calls for which all of the conditions hold.
func (c Calls) Where(conditions ...func(Call) bool) Calls {
	return slices.DeleteFunc(slices.Clone(c), func(call Call) bool {
		return slices.ContainsFunc(conditions, func(holds func(Call) bool) bool { return !holds(call) })
	})
}

var writing = map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true}

// Writes and Reads are conditions: whether a call asks for a change. A watch is a read.
func Writes(c Call) bool { return writing[c.Verb] }
func Reads(c Call) bool  { return !writing[c.Verb] }

// Refused is the condition that the API server did not do what was asked.
func Refused(c Call) bool { return c.Code >= 400 }

// Core is the condition that a call is not about keeping a lease.
func Core(c Call) bool { return c.Resource != "leases" }

// In, On and By are conditions: the namespace, the resource with its subresource ("glances/status"), the verb.
func In(namespace string) func(Call) bool {
	return func(c Call) bool { return c.Namespace == namespace }
}

func On(resource string) func(Call) bool {
	return func(c Call) bool { return c.resource() == resource }
}

func By(verb string) func(Call) bool { return func(c Call) bool { return c.Verb == verb } }

func (c Call) resource() string {
	if c.Subresource == "" {
		return c.Resource
	}
	return c.Resource + "/" + c.Subresource
}

// String is a table: how often what was asked, and which answers were refusals.
func (c Calls) String() string {
	times := map[string]int{}
	for _, call := range c {
		deed := call.Verb + " " + call.resource()
		if Refused(call) {
			deed += fmt.Sprintf(" (%d)", call.Code)
		}
		times[deed]++
	}
	var out strings.Builder
	for _, deed := range slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&out, "%4d × %s\n", times[deed], deed)
	}
	return out.String()
}

func (e *Env) auditLog() string    { return filepath.Join(e.Dir, "audit.log") }
func (e *Env) auditPolicy() string { return filepath.Join(e.Dir, "audit-policy.yaml") }

// fence asks something unmistakable, waits until it is written down, and returns the end of what is written. The log is
// written before a request ends, so whatever was answered earlier is written down by then.
func (e *Env) fence(ctx context.Context) (end int64, err error) {
	question := string(uuid.NewUUID())
	info, err := os.Stat(e.auditLog())
	if err != nil {
		return 0, err
	}
	if err := e.plain.Get().AbsPath("/version").Param("fence", question).Do(ctx).Error(); err != nil {
		return 0, fmt.Errorf("ask for the version: %w", err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		lines, err := e.auditText(info.Size())
		if err != nil {
			return 0, err
		}
		if bytes.Contains(lines, []byte(question)) {
			return info.Size() + int64(len(lines)), nil
		}
	}
	return 0, errors.New("the API server has written nothing for 10 s")
}

type auditLine struct {
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	UserAgent string    `json:"userAgent"`
	At        time.Time `json:"stageTimestamp"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource, Namespace, Name, APIGroup, Subresource string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

// auditText is the log from an offset to its last whole line; one that is still being written comes later.
func (e *Env) auditText(from int64) ([]byte, error) {
	file, err := os.Open(e.auditLog())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, from, math.MaxInt64-from))
	if err != nil {
		return nil, err
	}
	return text[:bytes.LastIndexByte(text, '\n')+1], nil
}

// call is the request a line is about, at the moment it counts: a watch when it starts, others when they end.
func (l auditLine) call() (_ Call, answered bool) {
	counts := "ResponseComplete"
	if l.Verb == "watch" {
		counts = "ResponseStarted"
	}
	if l.ObjectRef == nil || l.Stage != counts {
		return Call{}, false
	}
	return Call{
		Verb: l.Verb, Group: l.ObjectRef.APIGroup, Resource: l.ObjectRef.Resource, Subresource: l.ObjectRef.Subresource,
		Namespace: l.ObjectRef.Namespace, Name: l.ObjectRef.Name,
		User: l.User.Username, Agent: l.UserAgent, Code: l.ResponseStatus.Code, At: l.At,
		Forbidden: l.Annotations["authorization.k8s.io/decision"] == "forbid",
	}, true
}
