// Package mutants breaks the product on purpose, one small break at a time, and demands that a test notices.
//
// A Mutant replaces one text of one source file by another and names the tests that must fail then. The text must be
// found exactly once: a mutant that fits nowhere any more is an error, for nobody would notice that it tests nothing.
// The tree is never touched: the go command is given the changed file as an overlay, by a file for unit tests and by
// GOFLAGS for the tests that build the controller themselves.
//
// A mutant that no test can tell from the product stays in the table with the reason why it is Equivalent, and is run
// nevertheless: the day that a test kills it, the reason is wrong.
package mutants
