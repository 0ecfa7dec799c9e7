package issuing

import (
	"os"
	"path/filepath"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheCommittedManifestIsWhatTheObjectsSay(t *testing.T) {
	written, err := Webhook.Manifest()
	require.NoError(t, err)
	committed, err := os.ReadFile(filepath.Join("..", "manifests", ManifestFile))
	require.NoError(t, err)
	assert.Equal(t, string(written), string(committed), "run make generate")
}

func TestEachIssuerSignsWithWhatTheOneBeforeMade(t *testing.T) {
	ca, leaf := Webhook.CA(), Webhook.Leaf()
	assert.Equal(t, Webhook.SelfSigned().Name, ca.Spec.IssuerRef.Name)
	assert.True(t, ca.Spec.IsCA)
	assert.Equal(t, ca.Spec.SecretName, Webhook.Issuer().Spec.CA.SecretName)
	assert.Equal(t, Webhook.Issuer().Name, leaf.Spec.IssuerRef.Name)
	assert.False(t, leaf.Spec.IsCA)
	assert.NotEqual(t, ca.Spec.SecretName, leaf.Spec.SecretName)
	assert.Equal(t, Webhook.Namespace+"/"+leaf.Name, Webhook.InjectFrom())
}

func TestALeafNeverOutlivesTheCAThatSignedIt(t *testing.T) {
	ca, leaf := Webhook.CA().Spec, Webhook.Leaf().Spec
	assert.Greater(t, ca.RenewBefore.Duration, leaf.Duration.Duration)
}

func TestRenewalOfTheCAKeepsItsKeyAndRenewalOfTheLeafDoesNot(t *testing.T) {
	assert.Equal(t, certmanagerv1.RotationPolicyNever, Webhook.CA().Spec.PrivateKey.RotationPolicy)
	assert.Equal(t, certmanagerv1.RotationPolicyAlways, Webhook.Leaf().Spec.PrivateKey.RotationPolicy)
}

func TestCertificatesAreRenewedBeforeTheyExpireAndNotAllTheTime(t *testing.T) {
	for _, spec := range []certmanagerv1.CertificateSpec{Webhook.CA().Spec, Webhook.Leaf().Spec} {
		assert.Positive(t, spec.RenewBefore.Duration)
		assert.Less(t, spec.RenewBefore.Duration, spec.Duration.Duration/2)
	}
}
