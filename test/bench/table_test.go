package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheTableHasWhatWasMeasuredBesideItsGoal(t *testing.T) {
	r := results{}
	r.read(fmt.Sprintf(`goos: linux
BenchmarkDecide-%[1]d   	 1234	  2500 ns/op	       0 B/op
BenchmarkJudgement-%[1]d
    bench_test.go:47: a line that was logged
     100	 0.5 ns/op	  0.12 p50-ms
BenchmarkReviewAtTheSocket-%[1]d   	 10	 0.25 p50-ms	 2.5 p99-ms
BenchmarkReviewsPerCore-%[1]d   	 10	 3999 reviews/s
BenchmarkReviewsAtARate/2000-%[1]d 	 10	 3 p99-ms
PASS
`, cores()))
	assert.Equal(t, 2500.0, r["Decide"]["ns/op"])
	assert.Equal(t, 0.12, r["Judgement"]["p50-ms"])
	text := r.table()
	for _, line := range []string{
		`the planner decides +2500 ns`,
		`p50 +0.25 ms +≤ 0.3 ms +kept`,
		`p99 +2.50 ms +≤ 2 ms +missed`,
		`8 connections +3999 +≥ 4000 +missed`,
		`2,000 reviews a second, one core +3.00 ms +≤ 10 ms +kept`,
	} {
		assert.Regexp(t, line, text)
	}
	assert.NotContains(t, text, "memory", "what was not measured is left out")
}
