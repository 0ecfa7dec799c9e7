package node

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// identity is one key pair that the cluster's authority vouches for.
type identity struct {
	file   string
	name   string
	groups []string
	hosts  []string
	ips    []string
}

var identities = []identity{
	{
		file: "apiserver", name: "kube-apiserver",
		hosts: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
		ips: []string{Address, "127.0.0.1", APIService},
	},
	{file: "kubelet-server", name: NodeName, hosts: []string{NodeName}, ips: []string{Address}},
	{file: "admin", name: "kubernetes-admin", groups: []string{"system:masters"}},
	{file: "apiserver-kubelet-client", name: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
	{file: "kube-controller-manager", name: "system:kube-controller-manager"},
	{file: "kube-scheduler", name: "system:kube-scheduler"},
	{file: "kube-proxy", name: "system:kube-proxy"},
	{file: "kubelet", name: "system:node:" + NodeName, groups: []string{"system:nodes"}},
}

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// writePKI makes every key pair of the cluster, valid for a year from now.
func (l Layout) writePKI(now time.Time) error {
	if err := os.MkdirAll(l.path("pki"), 0o700); err != nil {
		return fmt.Errorf("make the cluster's certificates: %w", err)
	}
	ca, err := l.writeAuthority("ca", "kubernetes", now)
	if err != nil {
		return err
	}
	for _, id := range identities {
		if err := l.writeIdentity(ca, id, now); err != nil {
			return err
		}
	}
	front, err := l.writeAuthority("front-proxy-ca", "front-proxy-ca", now)
	if err != nil {
		return err
	}
	if err := l.writeIdentity(front, identity{file: "front-proxy-client", name: "front-proxy-client"}, now); err != nil {
		return err
	}
	key, err := l.writeKey("service-account")
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("make the service account key: %w", err)
	}
	return l.writePEM("service-account.pub", "PUBLIC KEY", public)
}

func (l Layout) writeAuthority(file, name string, now time.Time) (authority, error) {
	key, err := l.writeKey(file)
	if err != nil {
		return authority{}, err
	}
	template, err := certificate(identity{name: name}, now)
	if err != nil {
		return authority{}, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	template.ExtKeyUsage = nil
	signed, err := l.writeCertificate(file, template, key.Public(), authority{certificate: template, key: key})
	return authority{certificate: signed, key: key}, err
}

func (l Layout) writeIdentity(ca authority, id identity, now time.Time) error {
	key, err := l.writeKey(id.file)
	if err != nil {
		return err
	}
	template, err := certificate(id, now)
	if err != nil {
		return err
	}
	_, err = l.writeCertificate(id.file, template, key.Public(), ca)
	return err
}

func certificate(id identity, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %s: %w", id.name, err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.name, Organization: id.groups},
		DNSNames:     id.hosts,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, ip := range id.ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	return template, nil
}

func (l Layout) writeCertificate(
	file string, template *x509.Certificate, public crypto.PublicKey, ca authority,
) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, public, ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", file, err)
	}
	if err := l.writePEM(file+".crt", "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func (l Layout) writeKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of %s: %w", file, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make the key of %s: %w", file, err)
	}
	return key, l.writePEM(file+".key", "EC PRIVATE KEY", der)
}

func (l Layout) writePEM(file, kind string, der []byte) error {
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(l.pki(file), content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
