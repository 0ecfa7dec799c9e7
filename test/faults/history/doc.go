// Package history writes down what becomes of an object, its Jobs, its pods and its Deployment, and finds in it what must
// never have been. It is told by watches, in the order in which etcd took the writes, whoever wrote and whatever was
// disturbed meanwhile; so a rule holds for a whole run, not for the moments at which somebody looked.
package history
