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

func withAKeystone() results {
	r := promised()
	r.keystone = &walked{
		installed: stage.KeystoneAfter, headsBefore: stage.Keystones.HeadsBefore, headsAfter: stage.Keystones.HeadsAfter,
		spans: make([]stage.Span, 4), requests: ledger.Summary{Sent: fewestTokens},
	}
	return r
}

func TestTheDemoFailsWhenAnyNumberIsWrong(t *testing.T) {
	if wrong := promised().wrong(); len(wrong) > 0 {
		t.Fatalf("what was promised counts as wrong: %v", wrong)
	}
	if with := withAKeystone(); len(with.wrong()) > 0 {
		t.Fatalf("what was promised of Keystone counts as wrong: %v", with.wrong())
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

		"Keystone's release":  func(r *results) { *r = withAKeystone(); r.keystone.installed = "" },
		"Keystone's heads":    func(r *results) { *r = withAKeystone(); r.keystone.headsAfter = r.keystone.headsBefore },
		"Keystone's phases":   func(r *results) { *r = withAKeystone(); r.keystone.spans = nil },
		"Keystone's failures": func(r *results) { *r = withAKeystone(); r.keystone.requests.Failed = 1 },
		"Keystone's losses":   func(r *results) { *r = withAKeystone(); r.keystone.requests.Lost = 1 },
	} {
		r := promised()
		spoil(&r)
		if len(r.wrong()) != 1 {
			t.Errorf("%s: %v", name, r.wrong())
		}
	}
}

func TestTheSummarySaysHowManyRequestsFailed(t *testing.T) {
	if all := strings.Join(promised().lines(), "\n"); !strings.Contains(all, "requests: 1000 sent, 0 failed") {
		t.Errorf("the summary reads\n%s", all)
	}
}
