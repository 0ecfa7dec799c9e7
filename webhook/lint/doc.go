// Package lint judges manifests before they are anywhere near a cluster: in
// the CI of people who keep their objects in Git, or before a commit.
//
// The law is not told again here. Every object is put into the AdmissionReview
// that the API server would send, and the answer is the webhook's own, word
// for word. Beside it stands the floor: what the API server refuses by the CRD
// alone, read from the very CRD that is deployed.
//
// Without more to go by an object is judged as a new one. Told what is
// installed, it is judged as the edit of an object that is at rest there.
package lint
