// Package e2e walks a real Glance on a real node and asserts what the demo only shows: refusals, order of phases and
// events, heads of the database, costs in calls, no failed request, and that trouble is said and heals by itself. The
// tests are behind the build tag e2e: they need root, a cluster of their own, and minutes.
package e2e
