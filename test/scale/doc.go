// Package scale holds what is proven by numbers: a thousand Glances that are upgraded at once, and ten thousand that
// rest. `make scale` runs it whole and ends with a table of what was measured beside the goals; `make test` runs a small
// share of it, which judges counts alone and never times.
//
// What is real: etcd, the API server, the controller manager, the scheduler, and the binary of the controller with the
// limits and rights that it is shipped with. What is fake: the nodes. Kwok plays their kubelets, so every pod is ready,
// and every pod of a Job has succeeded, as soon as it is bound.
//
// A crowd is made of one specimen. It is installed, and upgraded, by the controller itself; then everything that etcd
// holds of it is copied under other names. So a copy is what the controller would have made, children of children and
// statuses included, and nobody in the cluster finds anything to do about it.
package scale
