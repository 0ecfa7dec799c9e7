package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Point is a write: what it asks for, and the so-manieth time that is asked.
type Point struct {
	// Verb is create, update, patch or delete.
	Verb string
	// Resource has its subresource: "glances/status".
	Resource string
	// Name is that of the object; that of an event is what it is about and its reason, "images:UpgradeInitiated".
	Name string
	// Nth counts from 1, over all processes that have used the wire.
	Nth int
}

// String is "update glances/status images 3".
func (p Point) String() string {
	return fmt.Sprintf("%s %s %s %d", p.Verb, p.Resource, p.Name, p.Nth)
}

// ParsePoint reads what String wrote.
func ParsePoint(text string) (Point, error) {
	words := strings.Fields(text)
	if len(words) != 4 {
		return Point{}, fmt.Errorf("%q is no write: it must look like \"update glances/status images 3\"", text)
	}
	nth, err := strconv.Atoi(words[3])
	if err != nil || nth < 1 {
		return Point{}, fmt.Errorf("%q is no write: %q does not count from 1", text, words[3])
	}
	return Point{Verb: words[0], Resource: words[1], Name: words[2], Nth: nth}, nil
}

// Event is whether the write is an event: told beside the work, and of no consequence to it.
func (p Point) Event() bool { return p.Resource == "events" }

// UpdateLike is whether somebody else's write can be in its way.
func (p Point) UpdateLike() bool { return p.Verb != "create" && !p.Event() }

// same is whether two points are the same but for the count.
func (p Point) same(other Point) bool {
	p.Nth = other.Nth
	return p == other
}

// Write is a request for a change, as it came from the process.
type Write struct {
	Point
	// Number counts all writes but events, from 1; an event has that of the write before it.
	Number int
	// Code is what the process was answered, 0 if it never was.
	Code int
	// Committed is that the API server took it, whatever the process was told.
	Committed bool
}

// request is what a path and a method ask for.
type request struct{ verb, group, namespace, resource, name string }

// read understands the paths of resources; other paths are discovery and health.
func read(method, path string, watching bool) (request, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	r := request{}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.group, parts = parts[1], parts[3:]
	default:
		return r, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		r.namespace, parts = parts[1], parts[2:]
	}
	r.resource = parts[0]
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.resource += "/" + strings.Join(parts[2:], "/")
	}
	switch {
	case method == "POST":
		r.verb = "create"
	case method == "PUT":
		r.verb = "update"
	case method == "PATCH":
		r.verb = "patch"
	case method == "DELETE":
		r.verb = "delete"
	case watching:
		r.verb = "watch"
	default:
		r.verb = "read"
	}
	return r, true
}

func (r request) writes() bool { return r.verb != "watch" && r.verb != "read" }
