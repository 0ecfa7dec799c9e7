// Package issuing says which certificates the webhook lives on, as cert-manager's typed objects: a self-signed CA of
// its own, an issuer that signs with it, and the leaf that is served. The API server trusts the CA, so what it trusts
// stays the same while leaves come and go. The manifests under certs/manifests are written from here; no binary
// imports this package.
package issuing

import (
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Serving names the Service that a certificate is for and the Secret that the key pair ends up in.
type Serving struct {
	Namespace string
	Service   string
	Secret    string
}

// Webhook is what deploy/base runs.
var Webhook = Serving{
	Namespace: "openstack-upgrade",
	Service:   "openstack-upgrade-webhook",
	Secret:    "openstack-upgrade-webhook-tls",
}

// Lifetimes of the two certificates. A leaf is renewed with 30 days left, so whoever watches the expiry has a month to
// act. The CA is renewed with a year left, long after the last leaf of the old one has gone.
const (
	LeafDuration    = 90 * 24 * time.Hour
	LeafRenewBefore = 30 * 24 * time.Hour
	CADuration      = 10 * 365 * 24 * time.Hour
	CARenewBefore   = 365 * 24 * time.Hour
)

// DNSName is the name under which the API server calls a webhook.
func (s Serving) DNSName() string { return s.Service + "." + s.Namespace + ".svc" }

// InjectFrom is the value of cert-manager's inject-ca-from annotation. It points at the leaf, not at the CA: the bundle
// then always belongs to the pair that is served, also if somebody throws the CA away.
func (s Serving) InjectFrom() string { return s.Namespace + "/" + s.Service }

// Objects lists all of them in the order in which they build on each other.
func (s Serving) Objects() []runtime.Object {
	return []runtime.Object{s.SelfSigned(), s.CA(), s.Issuer(), s.Leaf()}
}

// SelfSigned signs the CA and nothing else.
func (s Serving) SelfSigned() *certmanagerv1.Issuer {
	return s.issuer(s.authority(), certmanagerv1.IssuerConfig{SelfSigned: &certmanagerv1.SelfSignedIssuer{}})
}

// CA keeps its key when it is renewed, so a leaf signed before verifies against the new bundle too and there is no
// moment at which the API server and a pod disagree.
func (s Serving) CA() *certmanagerv1.Certificate {
	return s.certificate(s.authority(), certmanagerv1.CertificateSpec{
		IsCA:        true,
		CommonName:  s.authority(),
		SecretName:  s.authority(),
		Duration:    &metav1.Duration{Duration: CADuration},
		RenewBefore: &metav1.Duration{Duration: CARenewBefore},
		PrivateKey:  key(certmanagerv1.RotationPolicyNever),
		Usages:      []certmanagerv1.KeyUsage{certmanagerv1.UsageCertSign, certmanagerv1.UsageCRLSign, certmanagerv1.UsageDigitalSignature},
		IssuerRef:   reference(s.SelfSigned()),
	})
}

// Issuer signs leaves with the CA.
func (s Serving) Issuer() *certmanagerv1.Issuer {
	return s.issuer(s.Service, certmanagerv1.IssuerConfig{CA: &certmanagerv1.CAIssuer{SecretName: s.authority()}})
}

// Leaf is what the webhook serves; every renewal brings a new key.
func (s Serving) Leaf() *certmanagerv1.Certificate {
	return s.certificate(s.Service, certmanagerv1.CertificateSpec{
		SecretName:  s.Secret,
		DNSNames:    []string{s.DNSName()},
		Duration:    &metav1.Duration{Duration: LeafDuration},
		RenewBefore: &metav1.Duration{Duration: LeafRenewBefore},
		PrivateKey:  key(certmanagerv1.RotationPolicyAlways),
		Usages:      []certmanagerv1.KeyUsage{certmanagerv1.UsageDigitalSignature, certmanagerv1.UsageServerAuth},
		IssuerRef:   reference(s.Issuer()),
	})
}

// authority names the CA's Certificate and Secret and the issuer that signs it.
func (s Serving) authority() string { return s.Service + "-ca" }

func (s Serving) issuer(name string, config certmanagerv1.IssuerConfig) *certmanagerv1.Issuer {
	return &certmanagerv1.Issuer{
		TypeMeta:   metav1.TypeMeta{APIVersion: certmanagerv1.SchemeGroupVersion.String(), Kind: certmanagerv1.IssuerKind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace},
		Spec:       certmanagerv1.IssuerSpec{IssuerConfig: config},
	}
}

func (s Serving) certificate(name string, spec certmanagerv1.CertificateSpec) *certmanagerv1.Certificate {
	return &certmanagerv1.Certificate{
		TypeMeta:   metav1.TypeMeta{APIVersion: certmanagerv1.SchemeGroupVersion.String(), Kind: certmanagerv1.CertificateKind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace},
		Spec:       spec,
	}
}

func key(rotation certmanagerv1.PrivateKeyRotationPolicy) *certmanagerv1.CertificatePrivateKey {
	return &certmanagerv1.CertificatePrivateKey{
		Algorithm: certmanagerv1.ECDSAKeyAlgorithm, Size: 256, RotationPolicy: rotation,
	}
}

func reference(issuer *certmanagerv1.Issuer) certmanagermeta.IssuerReference {
	return certmanagermeta.IssuerReference{Name: issuer.Name, Kind: issuer.Kind, Group: certmanagerv1.SchemeGroupVersion.Group}
}
