package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/c5c3/openstack-upgrade/test/stage"
	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

func promised() results {
	return results{
		installed: stage.ReleaseAfter, headsBefore: stage.Glances.HeadsBefore, headsAfter: stage.Glances.HeadsAfter,
		spans: make([]stage.Span, 4), aborted: "Upgrade aborted", refused: len(refused),
		upgrade:  stage.Tally{Status: 5, Jobs: 3, Deployment: 1, Events: 5, Words: 2, Cleanup: 1, Sync: 1},
		requests: ledger.Summary{Sent: fewestRequests},
	}
}

func promisedOfKeystone() walked {
	return walked{
		installed: stage.KeystoneAfter, headsBefore: stage.Keystones.HeadsBefore, headsAfter: stage.Keystones.HeadsAfter,
		spans: make([]stage.Span, 4), requests: ledger.Summary{Sent: fewestTokens},
	}
}

func TestTheDemoFailsWhenAnyNumberIsWrong(t *testing.T) {
	if wrong := promised().wrong(); len(wrong) > 0 {
		t.Fatalf("what was promised counts as wrong: %v", wrong)
	}
	for name, spoil := range map[string]func(*results){
		"release":     func(r *results) { r.installed = stage.ReleaseBefore },
		"heads":       func(r *results) { r.headsAfter = r.headsBefore },
		"two heads":   func(r *results) { r.headsAfter = append(slices.Clone(r.headsAfter), stage.Glances.HeadsBefore...) },
		"phases":      func(r *results) { r.spans = r.spans[1:] },
		"abort":       func(r *results) { r.aborted = "" },
		"core writes": func(r *results) { r.upgrade.Jobs++ },
		"all writes":  func(r *results) { r.upgrade.Words += 3 },
		"reads":       func(r *results) { r.upgrade.Reads = make([]stage.Call, mostReads+1) },
		"failed":      func(r *results) { r.requests.Failed = 1 },
		"lost":        func(r *results) { r.requests.Lost = 1 },
		"too few":     func(r *results) { r.requests.Sent-- },
	} {
		r := promised()
		spoil(&r)
		if len(r.wrong()) != 1 {
			t.Errorf("%s: %v", name, r.wrong())
		}
	}
}

func TestTheDemoFailsWhenAnyNumberOfKeystoneIsWrong(t *testing.T) {
	if wrong := promisedOfKeystone().wrong(); len(wrong) > 0 {
		t.Fatalf("what was promised of Keystone counts as wrong: %v", wrong)
	}
	for name, spoil := range map[string]func(*walked){
		"release":  func(w *walked) { w.installed = "" },
		"heads":    func(w *walked) { w.headsAfter = w.headsBefore },
		"phases":   func(w *walked) { w.spans = nil },
		"failures": func(w *walked) { w.requests.Failed = 1 },
		"losses":   func(w *walked) { w.requests.Lost = 1 },
		"too few":  func(w *walked) { w.requests.Sent-- },
	} {
		w := promisedOfKeystone()
		spoil(&w)
		if len(w.wrong()) != 1 {
			t.Errorf("%s: %v", name, w.wrong())
		}
	}
}

func TestAVerdictIsPrintedBeforeItFails(t *testing.T) {
	var out strings.Builder
	d := &demo{out: &out}
	if err := d.judge([]string{"counted"}, nil); err != nil || strings.Contains(out.String(), "WRONG") {
		t.Errorf("%v, after\n%s", err, &out)
	}
	if err := d.judge([]string{"counted"}, []string{"1 requests failed"}); err == nil || !strings.Contains(out.String(), "WRONG: 1 requests failed") {
		t.Errorf("%v, after\n%s", err, &out)
	}
}

func TestOnlyCommandsThatFitAreShownAtTheEnd(t *testing.T) {
	const glanceWalk, keystones, back = `"openStackRelease":"2027.1"`, "kubectl -n identity get keystone", `"tag":"2026.1-bookworm"`
	for name, c := range map[string]struct {
		demo  demo
		shown []string
	}{
		"failed early":         {demo: demo{}},
		"failed in the abort":  {demo: demo{results: results{installed: stage.ReleaseAfter}}},
		"Glance alone":         {demo: demo{results: promised()}, shown: []string{glanceWalk}},
		"failed in Keystone's": {demo: demo{results: promised(), walked: &walked{}}, shown: []string{glanceWalk, keystones}},
		"both":                 {demo: demo{results: promised(), walked: new(promisedOfKeystone())}, shown: []string{glanceWalk, keystones, back}},
	} {
		commands := c.demo.reached().commands()
		for _, always := range []string{"kubectl -n openstack get glance,jobs,pods", "openstack-upgrade-controller", "openstack-upgrade-webhook"} {
			if !strings.Contains(commands, always) {
				t.Errorf("%s: %q is missing in\n%s", name, always, commands)
			}
		}
		for _, sometimes := range []string{glanceWalk, keystones, back} {
			if strings.Contains(commands, sometimes) != slices.Contains(c.shown, sometimes) {
				t.Errorf("%s: %q should be there: %v; it reads\n%s", name, sometimes, slices.Contains(c.shown, sometimes), commands)
			}
		}
	}
}

func TestTheSummarySaysHowManyRequestsFailed(t *testing.T) {
	if all := strings.Join(promised().lines(), "\n"); !strings.Contains(all, "requests: 1000 sent, 0 failed") {
		t.Errorf("the summary reads\n%s", all)
	}
}
