package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/c5c3/openstack-upgrade/test/harness"
)

// families are the metrics of a program.
type families map[string]*dto.MetricFamily

// scrape reads metrics.
func scrape(ctx context.Context, c *http.Client, url string) (families, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// sum adds up the metrics of a name that have these labels, given as name and value in turn. Of a histogram it is the
// number of what was observed.
func (f families) sum(name string, labels ...string) (sum float64) {
	for _, m := range f[name].GetMetric() {
		if !labelled(m, labels) {
			continue
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

// seconds adds up what a histogram has observed.
func (f families) seconds(name string, labels ...string) (sum float64) {
	for _, m := range f[name].GetMetric() {
		if labelled(m, labels) {
			sum += m.GetHistogram().GetSampleSum()
		}
	}
	return sum
}

func labelled(m *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		if label(m, labels[i]) != labels[i+1] {
			return false
		}
	}
	return true
}

func label(m *dto.Metric, name string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// requests is how often each verb was asked of each resource, by anybody, as the API server counts.
type requests map[string]float64

func asked(t testing.TB, env *harness.Env) requests {
	t.Helper()
	c, err := rest.HTTPClientFor(env.Config)
	require.NoError(t, err)
	url, _, err := rest.DefaultServerUrlFor(env.Config)
	require.NoError(t, err)
	found, err := scrape(t.Context(), c, url.JoinPath("metrics").String())
	require.NoError(t, err, "metrics of the API server")
	r := requests{}
	for _, m := range found["apiserver_request_total"].GetMetric() {
		what := label(m, "resource")
		if sub := label(m, "subresource"); sub != "" {
			what += "/" + sub
		}
		if what != "" && what != "leases" {
			r[strings.ToLower(label(m, "verb"))+" "+what] += m.GetCounter().GetValue()
		}
	}
	return r
}

func (r requests) since(before requests) requests {
	more := requests{}
	for what, times := range r {
		if times > before[what] {
			more[what] = times - before[what]
		}
	}
	return more
}

func (r requests) total() (sum float64) {
	for _, times := range r {
		sum += times
	}
	return sum
}

// per lists the requests, the most frequent first, with how many they are for each of so many objects.
func (r requests) per(objects int) string {
	var text strings.Builder
	for _, what := range slices.SortedFunc(maps.Keys(r), func(a, b string) int { return cmp.Or(cmp.Compare(r[b], r[a]), cmp.Compare(a, b)) }) {
		if each := r[what] / float64(objects); each >= 0.05 {
			fmt.Fprintf(&text, "  %9.0f  %6.2f each  %s\n", r[what], each, what)
		}
	}
	return text.String()
}
