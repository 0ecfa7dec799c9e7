package test

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/certs/serving"
	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
	"github.com/c5c3/openstack-upgrade/controller/metrics"
	"github.com/c5c3/openstack-upgrade/controller/reconcile"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/rows"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

func TestTheREADMEListsPhasesReasonsAndEventsAsTheCodeHasThem(t *testing.T) {
	assert.Equal(t, texts(upgrade.Phases), firsts(t, "Phase"))
	reasons := append(append(append([]upgrade.Reason{}, upgrade.ProgressReasons...), upgrade.DatabaseSynced), upgrade.FailureReasons...)
	assert.Equal(t, texts(reasons), firsts(t, "Reason"))
	assert.Equal(t, []string{reconcile.ReasonDeploymentAvailable, reconcile.ReasonDeploymentProgressing, reconcile.ReasonDeploymentUnavailable, reconcile.ReasonNotInstalled, reconcile.ReasonNameTaken}, firsts(t, "Pods"))
	assert.Equal(t, texts(upgrade.EventReasons), firsts(t, "Event"))
}

func TestTheREADMEListsFlagsAndDefaultsAsTheBinariesHaveThem(t *testing.T) {
	tables := tablesOf(t, "Flag")
	require.Len(t, tables, 3)
	for i, binary := range []string{"webhook", "webhook lint", "controller"} {
		help := helpOf(t, binary)
		listed := map[string]string{}
		for _, row := range tables[i] {
			listed[strings.TrimLeft(row[0], "-")] = row[1]
		}
		known := regexp.MustCompile(`(?m)^\s+(?:-[a-z], )?--?([a-z0-9-]+)`).FindAllStringSubmatch(help, -1)
		var flags []string
		for _, match := range known {
			if match[1] != "h" && match[1] != "help" {
				flags = append(flags, match[1])
			}
		}
		require.NotEmpty(t, flags, help)
		for _, flag := range flags {
			assert.Contains(t, listed, flag, "%s", binary)
		}
		assert.Len(t, listed, len(flags), "%s", binary)
		for flag, want := range listed {
			about := regexp.MustCompile(`(?s)--?` + flag + `\b(.*?)(\n\s+--?[a-z]|$)`).FindStringSubmatch(help)
			require.NotNil(t, about, flag)
			given := regexp.MustCompile(`\(default "?([^")]*)"?\)`).FindStringSubmatch(about[1])
			switch {
			case given == nil:
				assert.Contains(t, []string{"false", "all", "the pod's", "unset"}, want, "%s --%s has no default of its own", binary, flag)
			case strings.HasSuffix(given[1], "m0s"):
				duration, err := time.ParseDuration(given[1])
				require.NoError(t, err)
				listed, err := time.ParseDuration(want)
				require.NoError(t, err, "%s --%s", binary, flag)
				assert.Equal(t, duration, listed, "%s --%s", binary, flag)
			default:
				assert.Equal(t, given[1], want, "%s --%s", binary, flag)
			}
		}
	}
}

func TestTheREADMEListsTheMetricsOfTheController(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	meter := metrics.New(registry, "v", time.Unix(0, 0))
	meter.Phase("Glance", "ns", "n", upgrade.Expanding, time.Unix(1, 0))
	meter.PhaseEnded("Glance", upgrade.Expanding, time.Second)
	meter.Ended("Glance", "completed")
	meter.Job("Glance", "ns", "images", upgrade.Sync, "uid", "complete", time.Unix(2, 0))
	families, err := registry.Gather()
	require.NoError(t, err)
	var exported []string
	for _, family := range families {
		exported = append(exported, family.GetName())
	}
	assert.ElementsMatch(t, exported, firsts(t, "Metric"))
}

func TestTheREADMEListsTheMetricsOfTheWebhookAndTheirLabels(t *testing.T) {
	volume, pair := mint.Mount(t), mint.Valid(t, 1, time.Hour)
	volume.Update(t, pair)
	s, err := server.Listen(server.Config{ListenAddress: "127.0.0.1:0", HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", ShutdownTimeout: time.Second},
		admission.New(admission.Policy{}, admission.Kinds...), serving.Follow(volume.Dir, logr.Discard(), time.Now), logr.Discard())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() { stop(); assert.NoError(t, <-ended) }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: mint.Pool(pair), ServerName: "localhost"}, DisableKeepAlives: true}}
	answer, err := client.Get("https://" + s.ReviewAddress() + server.ReviewPath) // turned away, and counted
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())

	answer, err = http.Get("http://" + s.MetricsAddress() + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	exported := map[string]string{}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	require.NoError(t, err)
	for name, family := range families {
		if !strings.HasPrefix(name, "openstack_upgrade_") {
			continue
		}
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		slices.Sort(labels)
		exported[name] = strings.Join(labels, ", ")
	}
	listed := map[string]string{}
	tables := tablesOf(t, "Metric of the webhook")
	require.Len(t, tables, 1)
	for _, row := range tables[0] {
		labels := strings.Split(row[1], ", ")
		slices.Sort(labels)
		listed[row[0]] = strings.Join(labels, ", ")
	}
	assert.Equal(t, exported, listed)
}

func TestTheRunbookHasAPageForEachFailureReason(t *testing.T) {
	text, err := os.ReadFile("../docs/runbook.md")
	require.NoError(t, err)
	var pages []string
	for _, head := range regexp.MustCompile(`(?m)^### ([A-Z][A-Za-z]+)$`).FindAllStringSubmatch(string(text), -1) {
		pages = append(pages, head[1])
	}
	assert.Equal(t, texts(upgrade.FailureReasons), pages)
}

// The rows are asked of a real API server in test/integration/admission.
func TestTheREADMETellsWhoRefusesWhatAsTheRowsDo(t *testing.T) {
	byCRD, byWebhook, ifAsked, all := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	note := func(in map[string]bool, answers []string) {
		for _, answer := range answers {
			_, reason, _ := strings.Cut(answer, " ")
			in[reason], all[reason] = true, true
		}
	}
	for _, row := range rows.All() {
		if row.Policy != (admission.Policy{}) {
			note(ifAsked, row.Refused)
			continue
		}
		note(byCRD, slices.DeleteFunc(slices.Clone(row.Floor), func(answer string) bool { return strings.HasSuffix(answer, " TooLong") }))
		note(byWebhook, row.Refused)
	}
	tables := tablesOf(t, "Refusal")
	require.Len(t, tables, 1)
	said := func(cell string) bool { return strings.HasPrefix(cell, "yes") }
	for _, row := range tables[0] {
		reason := row[0]
		assert.True(t, all[reason], "no row is refused with %s", reason)
		assert.Equal(t, byCRD[reason], said(row[1]), "%s by the CRD", reason)
		assert.Equal(t, byWebhook[reason], said(row[2]), "%s by the webhook", reason)
		if ifAsked[reason] {
			assert.Contains(t, row[2], "--reject-abort-while-contracting", reason)
		}
		assert.Equal(t, slices.Contains(upgrade.FailureReasons, upgrade.Reason(reason)), row[3] == "waits", "%s by the controller", reason)
		delete(all, reason)
	}
	assert.Empty(t, all, "refusals that the README does not tell")
}

func TestTheREADMEListsTheWarnings(t *testing.T) {
	assert.Equal(t, texts(admission.Warnings), firsts(t, "Warning"))
}

// firsts is the first column of the table whose head begins with a word.
func firsts(t *testing.T, head string) []string {
	t.Helper()
	tables := tablesOf(t, head)
	require.Len(t, tables, 1, head)
	var column []string
	for _, row := range tables[0] {
		column = append(column, row[0])
	}
	return column
}

// tablesOf reads the rows of every table in the README whose head begins with
// a word, without backquotes.
func tablesOf(t *testing.T, head string) [][][]string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var tables [][][]string
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "| "+head+" |"):
			tables, inside = append(tables, nil), true
		case inside && strings.HasPrefix(line, "|---"):
		case inside && strings.HasPrefix(line, "|"):
			var row []string
			for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
				row = append(row, strings.ReplaceAll(strings.TrimSpace(cell), "`", ""))
			}
			tables[len(tables)-1] = append(tables[len(tables)-1], row)
		default:
			inside = false
		}
	}
	return tables
}

func texts[T ~string](values []T) []string {
	var all []string
	for _, value := range values {
		all = append(all, string(value))
	}
	return all
}
