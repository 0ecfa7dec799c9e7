// Package sweep disturbs every story at every write of the controller, in every way: the process killed before and after
// it, the reply lost, the write refused as a conflict once, five and fifty times in a row. The writes are those that come
// when the story is lived; nobody has listed them. A disturbed story must come to what the undisturbed one came to.
package sweep
