package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
)

// figure is a line of the table: a metric of a benchmark, and the most or least that it should be.
type figure struct {
	says      string
	benchmark string
	metric    string
	format    string
	// goal is the most that the figure should be, or the least if it is a rate; 0 when there is none.
	goal float64
	rate bool
}

// figures is the table, in the order in which it is read.
var figures = []figure{
	{says: "the planner decides", benchmark: "Decide", metric: "ns/op", format: "%.0f ns"},
	{says: "the webhook judges a review of 8 KB, without a network: p50", benchmark: "Judgement", metric: "p50-ms", format: "%.3f ms"},
	{says: "review of 8 KB at the socket, warm connection with TLS: p50", benchmark: "ReviewAtTheSocket", metric: "p50-ms", format: "%.2f ms", goal: 0.3},
	{says: "  p99", benchmark: "ReviewAtTheSocket", metric: "p99-ms", format: "%.2f ms", goal: 2},
	{says: "reviews a second that one core answers, 8 connections", benchmark: "ReviewsPerCore", metric: "reviews/s", format: "%.0f", goal: 4000, rate: true},
	{says: "  p50 there", benchmark: "ReviewsPerCore", metric: "p50-ms", format: "%.2f ms"},
	{says: "  p99 there", benchmark: "ReviewsPerCore", metric: "p99-ms", format: "%.2f ms", goal: 10},
	{says: "  processor time of one review", benchmark: "ReviewsPerCore", metric: "cpu-µs/review", format: "%.0f µs"},
	{says: "p99 at a steady 2,000 reviews a second, one core", benchmark: "ReviewsAtARate/2000", metric: "p99-ms", format: "%.2f ms", goal: 10},
	{says: "p99 at a steady 4,000 reviews a second, one core", benchmark: "ReviewsAtARate/4000", metric: "p99-ms", format: "%.2f ms", goal: 10},
	{says: "resident memory of the webhook: idle", benchmark: "Memory", metric: "MiB-idle", format: "%.1f MiB", goal: 32},
	{says: "  busy, at most", benchmark: "Memory", metric: "MiB-busy", format: "%.1f MiB", goal: 64},
	{says: "  under attack, at most", benchmark: "Memory", metric: "MiB-attacked", format: "%.1f MiB", goal: 64},
	{says: "  p99 of somebody else's reviews meanwhile", benchmark: "Memory", metric: "p99-ms-attacked", format: "%.0f ms"},
	{says: "write of an 8 KB object to a real API server: p50", benchmark: "AWriteAndWhoJudgesIt", metric: "nobody-p50-ms", format: "%.2f ms"},
	{says: "  p99", benchmark: "AWriteAndWhoJudgesIt", metric: "nobody-p99-ms", format: "%.2f ms"},
	{says: "  judged by the webhook, added at p50", benchmark: "AWriteAndWhoJudgesIt", metric: "webhook-adds-p50-ms", format: "%+.2f ms", goal: 3},
	{says: "  judged by the webhook, added at p99", benchmark: "AWriteAndWhoJudgesIt", metric: "webhook-adds-p99-ms", format: "%+.2f ms", goal: 10},
	{says: "  judged by a ValidatingAdmissionPolicy, added at p50", benchmark: "AWriteAndWhoJudgesIt", metric: "policy-adds-p50-ms", format: "%+.2f ms"},
	{says: "  judged by a ValidatingAdmissionPolicy, added at p99", benchmark: "AWriteAndWhoJudgesIt", metric: "policy-adds-p99-ms", format: "%+.2f ms"},
	{says: "Job Complete → next Job created: p50", benchmark: "JobCompleteToNextJob", metric: "p50-ms", format: "%.0f ms"},
	{says: "  p99", benchmark: "JobCompleteToNextJob", metric: "p99-ms", format: "%.0f ms"},
}

// results are the metrics of each benchmark, by its name without the word and the number of cores.
type results map[string]map[string]float64

// read takes the lines of go test -bench. A benchmark that logs has its name on a line of its own.
func (r results) read(said string) {
	name := ""
	for line := range strings.Lines(said) {
		words := strings.Fields(line)
		if len(words) > 0 && strings.HasPrefix(words[0], "Benchmark") {
			name = strings.TrimSuffix(strings.TrimPrefix(words[0], "Benchmark"), "-"+strconv.Itoa(cores()))
			words = words[1:]
		}
		if len(words) < 3 {
			continue
		}
		if _, err := strconv.Atoi(words[0]); err != nil || name == "" {
			continue
		}
		if r[name] == nil {
			r[name] = map[string]float64{}
		}
		for pair := words[1:]; len(pair) >= 2; pair = pair[2:] {
			if value, err := strconv.ParseFloat(pair[0], 64); err == nil {
				r[name][pair[1]] = value
			}
		}
	}
}

// table is what was measured of the figures, beside the goals.
func (r results) table() string {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\tmeasured\tgoal\t")
	for _, f := range figures {
		value, known := r[f.benchmark][f.metric]
		if !known {
			continue
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", f.says, fmt.Sprintf(f.format, value), f.wanted(), f.verdict(value))
	}
	_ = out.Flush() // a strings.Builder takes everything
	return text.String()
}

func (f figure) wanted() string {
	if f.goal == 0 {
		return ""
	}
	sign, unit := "≤ ", f.format[strings.IndexByte(f.format, 'f')+1:]
	if f.rate {
		sign = "≥ "
	}
	return sign + strconv.FormatFloat(f.goal, 'f', -1, 64) + unit
}

func (f figure) verdict(value float64) string {
	switch {
	case f.goal == 0:
		return ""
	case f.rate == (value >= f.goal) || value == f.goal:
		return "kept"
	}
	return "missed"
}

func cores() int { return runtime.GOMAXPROCS(0) }
