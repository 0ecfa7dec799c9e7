// Package integration shows what the product does, by its real controller binary against a real API server and the real
// Job, Deployment and garbage collection controllers. Only the pods are played, by harness.Kubelet. No webhook is there:
// what the controller refuses here it refuses alone.
//
// A test is named after what it shows; BL-… is the number of the report it comes from. Each has a namespace and a
// controller of its own, so all of them run side by side.
//
// A test that is about the middle of a walk does not walk there: it writes down the status that such a walk leaves,
// before the controller starts. Status is the whole memory of the product, and every decision is a function of it and of
// what is seen, so nobody can tell the difference.
package integration
