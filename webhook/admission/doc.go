// Package admission judges one AdmissionReview: bytes in, answer out. It has
// no client, no clock and no memory, because an update carries everything the
// law asks for: the recorded State lies in the stored object, the Desired in
// the new one.
//
// Three answers are possible. What does not touch release or image is admitted
// at once, so that labels, finalizers, deletion and the controller's own writes
// never depend on a rule. What does is judged by the law that the controller
// repeats (package upgrade); a refusal names the field, the reason word, both
// releases and a command that would pass. What cannot be understood is
// answered with an error and is never admitted.
//
// A kind is an entry of a table (Kind). Nothing else in this package knows
// one kind from another.
package admission
