package admission_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// large makes an object of about 8 KB, most of it what real objects carry and
// nobody judges: configuration, conditions, managed fields.
func large(g *v1alpha1.Glance) {
	g.Spec.ExtraConfig = map[string]v1alpha1.ConfigSection{}
	for i := range 24 {
		g.Spec.ExtraConfig[fmt.Sprintf("section_%d", i)] = map[string]string{
			"an_option": "a value of the usual length", "another_option": "true", "a_third_one": "https://keystone.example.org:5000/v3"}
	}
	for _, kind := range []string{"DatabaseReady", "DeploymentReady", "Ready"} {
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: kind, Status: "True", Reason: "AllReady",
			Message: "everything is as it was asked to be", LastTransitionTime: metav1.NewTime(time.Unix(1_750_000_000, 0))})
	}
	for manager := 0; ; manager++ {
		var fields strings.Builder
		fields.WriteString(`{"f:spec":{".":{}`)
		for i := range 20 {
			fmt.Fprintf(&fields, `,"f:field%d":{".":{},"f:name":{}}`, i)
		}
		fields.WriteString("}}")
		g.ManagedFields = append(g.ManagedFields, metav1.ManagedFieldsEntry{Manager: fmt.Sprintf("manager-%d", manager), Operation: "Update",
			APIVersion: g.APIVersion, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields.String())}})
		if text, err := json.Marshal(g); err != nil || len(text) > 8<<10-500 {
			return
		}
	}
}

// upgrade8KB is an upgrade of a large object: two of them in one review.
func upgrade8KB(b *testing.B) []byte {
	b.Helper()
	stored := steady(glance("2026.1", "2026.1", "", large), "2026.1")
	body := []byte(review(b, update(b, stored, glance("2026.2", "2026.2", "", large))))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	b.Logf("object %d bytes, review %d bytes", len(raw(b, stored)), len(body))
	return body
}

// BenchmarkReview is the judgement alone: bytes in, answer out.
func BenchmarkReview(b *testing.B) {
	judge := admission.New(admission.Policy{}, admission.Kinds...)
	body := upgrade8KB(b)
	measure(b, func() error {
		answer, _, err := judge.Review(body)
		if err == nil && !answer.Response.Allowed {
			err = fmt.Errorf("refused: %+v", answer.Response.Result)
		}
		return err
	})
}

// BenchmarkReviewOverTLS is what the API server sees, on one warm connection.
func BenchmarkReviewOverTLS(b *testing.B) {
	h := serve(b, admission.Policy{}, admission.Kinds...)
	body := upgrade8KB(b)
	measure(b, func() error {
		response, err := h.client.Post(h.url, "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(response.Body)
		if err == nil && !bytes.Contains(answer, []byte(`"allowed":true`)) {
			err = fmt.Errorf("refused: %s", answer)
		}
		return err
	})
}

// measure reports the median and the 99th percentile beside the mean.
func measure(b *testing.B, deed func() error) {
	b.Helper()
	require.NoError(b, deed(), "the first one, to warm up")
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := deed(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
