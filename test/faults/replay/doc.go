// Package replay lives the schedules that the model of package upgrade finds on the real thing: the real controller, its
// line to the API server in the hands of the wire, and pods that run, end and go when the schedule says so.
//
// A schedule is a plan of statements. What people do, what caches do not show, where the controller is killed and when
// pods end is done; what the controller is said to write is waited for, and if it does not come the schedule goes on: the
// planner that the model has found it for had a hole, the product has none. The rules of package history hold for the
// whole of the run, it comes to a good end, and then to rest.
package replay
