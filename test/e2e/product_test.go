//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/stage"
)

func pods(t *testing.T, name string) []corev1.Pod {
	t.Helper()
	found, err := on.ProductPods(t.Context(), name)
	require.NoError(t, err)
	return found
}

// running are the identities of the pods of one of the two, so that a change of any is seen.
func running(t *testing.T, name string) map[types.UID]int32 {
	t.Helper()
	found := map[types.UID]int32{}
	for _, p := range pods(t, name) {
		for _, c := range p.Status.ContainerStatuses {
			found[p.UID] += c.RestartCount
		}
	}
	return found
}

func TestBothBinariesRunRestricted(t *testing.T) {
	var namespace corev1.Namespace
	require.NoError(t, on.Client.Get(t.Context(), client.ObjectKey{Name: stage.ProductNamespace}, &namespace))
	assert.Equal(t, "restricted", namespace.Labels["pod-security.kubernetes.io/enforce"])
	images := map[string]string{stage.Webhook: stage.WebhookImage, stage.Controller: stage.ControllerImage}
	for name, image := range images {
		found := pods(t, name)
		assert.Len(t, found, 2, name)
		for _, p := range found {
			c := p.Spec.Containers[0]
			assert.Equal(t, image, c.Image)
			assert.True(t, *p.Spec.SecurityContext.RunAsNonRoot)
			assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
			assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
			assert.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
		}
	}
	for _, p := range pods(t, stage.Webhook) {
		for _, v := range p.Spec.Volumes {
			assert.Nil(t, v.Projected, "the webhook has a token")
		}
	}
}

func TestARestartedControllerLeavesTheWebhookAlone(t *testing.T) {
	before := running(t, stage.Webhook)
	require.NoError(t, on.Restart(t.Context(), stage.Controller))
	assert.Equal(t, before, running(t, stage.Webhook))
}
