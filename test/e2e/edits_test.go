//go:build e2e

package e2e

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/stage"
)

const (
	editsPerSecond = 200
	// outage is how long a crash of a replica may be felt: the kubelet looks at its containers once a second, and until
	// kube-proxy has been told, the address of the Service still leads to a port where nobody listens.
	outage = 8 * time.Second
)

// losses are what happens to the webhook while people edit. The API server asks once and repeats no call that has
// failed, so nothing may fail when a replica ends in order. One that crashes takes the calls with it that were under way
// on its connections, and those that are sent to it before Kubernetes has noticed: they are refused, never admitted
// unjudged, and pass when they are sent again. Nothing on our side of the connection can change that.
var losses = []struct {
	name  string
	crash bool
	deed  func(t *testing.T)
}{
	{name: "a rolling restart", deed: func(t *testing.T) {
		require.NoError(t, on.Restart(t.Context(), stage.Webhook))
	}},
	{name: "a replica is deleted", deed: func(t *testing.T) {
		require.NoError(t, on.Client.Delete(t.Context(), one(t)))
	}},
	{name: "a replica is deleted with no grace at all", deed: func(t *testing.T) {
		require.NoError(t, on.Client.Delete(t.Context(), one(t), client.GracePeriodSeconds(0)))
	}},
	{name: "cert-manager renews the certificate", deed: renewed},
	{name: "a replica is killed with SIGKILL", crash: true, deed: func(t *testing.T) {
		require.NoError(t, on.Kill(t.Context(), one(t)))
	}},
}

func TestEditsAreJudgedWhileTheWebhookIsRestartedRenewedAndLosesAReplica(t *testing.T) {
	require.NoError(t, on.Scale(t.Context(), stage.Controller, 0))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		assert.NoError(t, on.DropNamespace(ctx, stage.EditsNamespace))
		assert.NoError(t, on.Scale(ctx, stage.Controller, 2))
	})
	for _, loss := range losses {
		t.Run(loss.name, func(t *testing.T) {
			edits, err := on.StartEdits(t.Context(), editsPerSecond)
			require.NoError(t, err)
			stopped := false
			defer func() {
				if !stopped {
					_, _ = edits.Stop(context.WithoutCancel(t.Context())) // the test has failed already
				}
			}()
			time.Sleep(2 * time.Second)
			began := time.Now()
			loss.deed(t)
			require.NoError(t, on.Await(t.Context(), "the webhook to be as before", time.Minute, on.Settled(stage.Webhook)))
			time.Sleep(2 * time.Second)
			if loss.crash {
				time.Sleep(time.Until(began.Add(outage + 3*time.Second)))
			}
			summary, err := edits.Stop(t.Context())
			stopped = true
			require.NoError(t, err)
			on.Say("%s: %s", loss.name, summary)
			for _, failure := range summary.Failed {
				on.Say("  after %.3f s: %s", failure.At.Sub(began).Seconds(), failure.Words)
			}
			assert.Greater(t, summary.Sent, 200, "a machine that is busy with other things edits less often, but it edits")
			assert.GreaterOrEqual(t, summary.Judged, summary.Sent-len(summary.Failed), "the API server has asked the webhook about every edit")
			if !loss.crash {
				assert.Empty(t, summary.Failed)
				return
			}
			assert.Less(t, len(summary.Failed), summary.Sent/10)
			for _, failure := range summary.Failed {
				assert.Contains(t, failure.Words, "failed calling webhook", "what could not be judged is refused")
				assert.WithinRange(t, failure.At, began.Add(-time.Second), began.Add(outage))
			}
		})
	}
}

func one(t *testing.T) *corev1.Pod {
	t.Helper()
	found := pods(t, stage.Webhook)
	require.Len(t, found, 2)
	return &found[0]
}

// renewed has the certificate renewed and waits until every replica hands the new one out.
func renewed(t *testing.T) {
	before := issuedSerial(t)
	require.NoError(t, on.Renew(t.Context()))
	require.NoError(t, on.Await(t.Context(), "cert-manager to have written another certificate", time.Minute, func(context.Context) (bool, string, error) {
		return issuedSerial(t) != before, "the Secret is the same", nil
	}))
	issued, wanted := time.Now(), issuedSerial(t)
	for i, pod := range pods(t, stage.Webhook) {
		// A kubelet brings files of Secrets up to date once a minute, and whenever a pod is changed.
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"look-again":%q}}}`, strconv.Itoa(i))
		require.NoError(t, on.Client.Patch(t.Context(), &pod, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	require.NoError(t, on.Await(t.Context(), "both replicas to serve the new certificate", 2*time.Minute, func(ctx context.Context) (bool, string, error) {
		for _, pod := range pods(t, stage.Webhook) {
			if serial, err := on.ServedSerial(ctx, pod.Name); err != nil || serial != wanted {
				return false, fmt.Sprintf("%s serves %s, not %s (%v)", pod.Name, serial, wanted, err), nil
			}
		}
		return true, "", nil
	}))
	on.Say("serial %s became %s, served by both %.1f s after the Secret", before, wanted, time.Since(issued).Seconds())
}

func issuedSerial(t *testing.T) string {
	t.Helper()
	secret := &corev1.Secret{}
	require.NoError(t, on.Client.Get(t.Context(), client.ObjectKey{Namespace: stage.ProductNamespace, Name: stage.Webhook + "-tls"}, secret))
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	require.NotNil(t, block)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return fmt.Sprintf("%X", certificate.SerialNumber)
}
