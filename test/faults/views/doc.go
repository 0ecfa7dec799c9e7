// Package views has the controller see the world as it was, or miss what happened, or not see it at all: watches that are
// held back at each phase boundary and let go later, one kind of object or all; watches that are cut while things happen,
// so that the controller lists what is left; an API server that it cannot reach for a while; its own record lost; and a
// second controller that has taken over meanwhile.
package views
