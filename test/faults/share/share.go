// Package share says how much of the experiments is to be run: a bounded, seeded share in `make test`, or the whole in
// `make faults`. It is the one place where that is read from the environment.
package share

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// The variables that `make faults` sets.
const (
	// Much is "whole", or anything else for a share.
	Much = "FAULTS"
	// Chance is the seed of whatever is left to chance.
	Chance = "SEED"
	// Given is one plan to run and nothing else, in the words in which a failure prints it.
	Given = "PLAN"
	// Collected is a file that collects the rows of all experiments.
	Collected = "FAULTS_LINES"
)

// Whole tells whether everything is to be run.
func Whole() bool { return os.Getenv(Much) == "whole" }

// Stays is for how long, at least, the controller must have nothing to write about an object that has come to rest.
func Stays() time.Duration {
	if Whole() {
		return 2 * time.Minute
	}
	return 2 * time.Second
}

// Plan is the one plan that is asked for, empty when none is.
func Plan() string { return os.Getenv(Given) }

// Lines is the file that collects the rows of experiments, empty for none.
func Lines() string { return os.Getenv(Collected) }

// shareOfChance is the seed of a bounded share: a gate decides the same of the same tree.
const shareOfChance = 1

// Seed is what is given, or a new one for the whole; it is told, so that it can be given again.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(shareOfChance)
	if Whole() {
		seed = rand.Uint64N(1e9)
	}
	if text := os.Getenv(Chance); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%s is no seed: give the number that a failure has printed", Chance, text)
		}
		seed = given
	}
	t.Logf("%s=%d", Chance, seed)
	return seed
}
