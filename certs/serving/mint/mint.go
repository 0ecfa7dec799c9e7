// Package mint makes key pairs for tests, and lays them on disk the way the
// kubelet lays a Secret: every update is a new directory, swapped in by one
// rename of the symlink ..data.
package mint

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Pair is a self-signed certificate and its key, both as PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
	Serial      string
}

// Valid makes a pair for localhost that is valid now and for the time given.
func Valid(t testing.TB, serial int64, lifetime time.Duration) Pair {
	t.Helper()
	return Between(t, serial, time.Now().Add(-time.Minute), time.Now().Add(lifetime))
}

// Between makes a pair for localhost with the validity given.
func Between(t testing.TB, serial int64, notBefore, notAfter time.Time) Pair {
	t.Helper()
	return pair(t, serial, notBefore, notAfter, "localhost")
}

// Named makes a pair for another name that is valid now and for an hour.
func Named(t testing.TB, serial int64, name string) Pair {
	t.Helper()
	return pair(t, serial, time.Now().Add(-time.Minute), time.Now().Add(time.Hour), name)
}

// ForClients makes a pair that servers may not use.
func ForClients(t testing.TB, serial int64) Pair {
	t.Helper()
	return pair(t, serial, time.Now().Add(-time.Minute), time.Now().Add(time.Hour), "localhost", x509.ExtKeyUsageClientAuth)
}

func pair(t testing.TB, serial int64, notBefore, notAfter time.Time, name string, uses ...x509.ExtKeyUsage) Pair {
	t.Helper()
	if len(uses) == 0 {
		uses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("generate key: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: append([]x509.ExtKeyUsage{}, uses...),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatalf("sign certificate: %v", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("encode key: %v", err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		Serial:      fmt.Sprintf("%X", template.SerialNumber.Bytes()),
	}
}

// Pool trusts the pairs.
func Pool(pairs ...Pair) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, pair := range pairs {
		pool.AppendCertsFromPEM(pair.Certificate)
	}
	return pool
}

// Volume is a directory that looks like a mounted Secret.
type Volume struct {
	Dir     string
	updates int
}

// Mount begins an empty volume.
func Mount(t testing.TB) *Volume {
	t.Helper()
	return &Volume{Dir: t.TempDir()}
}

// Update swaps the pair in.
func (v *Volume) Update(t testing.TB, pair Pair) {
	t.Helper()
	v.updates++
	version := fmt.Sprintf("..%d", v.updates)
	v.must(t, os.Mkdir(filepath.Join(v.Dir, version), 0o755))
	v.must(t, os.WriteFile(filepath.Join(v.Dir, version, "tls.crt"), pair.Certificate, 0o600))
	v.must(t, os.WriteFile(filepath.Join(v.Dir, version, "tls.key"), pair.Key, 0o600))
	v.must(t, os.Symlink(version, filepath.Join(v.Dir, "..data_tmp")))
	v.must(t, os.Rename(filepath.Join(v.Dir, "..data_tmp"), filepath.Join(v.Dir, "..data")))
	if v.updates == 1 {
		for _, file := range []string{"tls.crt", "tls.key"} {
			v.must(t, os.Symlink(filepath.Join("..data", file), filepath.Join(v.Dir, file)))
		}
		return
	}
	v.must(t, os.RemoveAll(filepath.Join(v.Dir, fmt.Sprintf("..%d", v.updates-1))))
}

func (v *Volume) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("update volume: %v", err)
	}
}
