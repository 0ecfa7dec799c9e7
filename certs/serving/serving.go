// Package serving follows a TLS key pair on disk, as a mounted Secret holds
// it, so that a renewed certificate is served without a restart.
//
// What is served is always a whole pair. A pair that is torn, unreadable,
// mismatched, outside its validity, for another name or for clients alone never
// replaces a good one: the last good pair stays, the fault is logged, counted
// and told, and the next look may heal it. Validity, name and use decide only
// between pairs; when there is nothing better, a pair that is expired or for
// another name is served too, and Ready says so.
package serving

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// The names of the two files, as in every Secret of type kubernetes.io/tls.
const (
	CertificateFile = "tls.crt"
	KeyFile         = "tls.key"
)

// Pair is one key pair that is or was served.
type Pair struct {
	// Serial is the certificate's serial number, in hex as openssl writes it.
	Serial    string
	NotBefore time.Time
	NotAfter  time.Time

	certificate *tls.Certificate
}

// Valid is nil when the pair is inside its validity at the time given.
func (p *Pair) Valid(now time.Time) error {
	switch {
	case now.After(p.NotAfter):
		return fmt.Errorf("certificate %s expired at %s", p.Serial, p.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(p.NotBefore):
		return fmt.Errorf("certificate %s is not valid before %s", p.Serial, p.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// For is nil when the pair is for every name given.
func (p *Pair) For(names ...string) error {
	for _, name := range names {
		if p.certificate.Leaf.VerifyHostname(name) != nil {
			return fmt.Errorf("certificate %s is not for %s but for %s", p.Serial, name, listed(p.certificate.Leaf))
		}
	}
	return nil
}

// ForServers is nil when clients let the pair prove a server's identity; a
// certificate without a word about its use may be used for anything.
func (p *Pair) ForServers() error {
	uses := p.certificate.Leaf.ExtKeyUsage
	if len(uses)+len(p.certificate.Leaf.UnknownExtKeyUsage) == 0 ||
		slices.Contains(uses, x509.ExtKeyUsageServerAuth) || slices.Contains(uses, x509.ExtKeyUsageAny) {
		return nil
	}
	return fmt.Errorf("certificate %s is not for servers: its extended key usage lacks server authentication", p.Serial)
}

func listed(leaf *x509.Certificate) string {
	const enough = 200
	names := slices.Clone(leaf.DNSNames)
	for _, address := range leaf.IPAddresses {
		names = append(names, address.String())
	}
	if len(names) == 0 {
		return "no name"
	}
	text := strings.Join(names, ", ")
	if len(text) > enough {
		text = text[:enough] + "…"
	}
	return text
}

// Follower serves the pair in one directory.
type Follower struct {
	dir   string
	log   logr.Logger
	now   func() time.Time
	names []string
	// settle waits for the last of the events that one change makes; recheck
	// finds what the watch missed, such as a directory mounted later.
	settle, recheck time.Duration

	served   atomic.Pointer[Pair]
	fault    atomic.Pointer[error]
	failures atomic.Uint64
	// complaint is what was last logged, so that a lasting fault is logged
	// once and counted every time. Only look writes it.
	complaint string
}

// Follow begins with the pair that is in dir now. Having none is no error:
// the Secret may come later, and Ready tells. Run keeps following. The pair is
// to be for the names given; without any, every name is right.
func Follow(dir string, log logr.Logger, now func() time.Time, names ...string) *Follower {
	f := &Follower{dir: dir, log: log.WithName("certificate"), now: now, names: names, settle: 200 * time.Millisecond, recheck: 10 * time.Second}
	f.look()
	return f
}

// Served is the pair that new connections get, nil while there is none.
func (f *Follower) Served() *Pair { return f.served.Load() }

// Failures counts the looks at the directory that found no pair fit to be
// served.
func (f *Follower) Failures() uint64 { return f.failures.Load() }

// Ready is nil when a pair is served that clients can accept at the time
// given.
func (f *Follower) Ready(now time.Time) error {
	pair := f.served.Load()
	if pair == nil {
		return fmt.Errorf("no certificate could be loaded from %s yet", f.dir)
	}
	return f.fit(pair, now)
}

// Fault is what keeps the pair on disk from being served, nil when nothing
// does.
func (f *Follower) Fault() error {
	if fault := f.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// fit is nil when clients can accept the pair.
func (f *Follower) fit(pair *Pair, now time.Time) error {
	if err := pair.Valid(now); err != nil {
		return err
	}
	if err := pair.ForServers(); err != nil {
		return err
	}
	return pair.For(f.names...)
}

// GetCertificate is for tls.Config: the newest good pair, for every name.
func (f *Follower) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair := f.served.Load()
	if pair == nil {
		return nil, errors.New("no certificate is loaded yet")
	}
	return pair.certificate, nil
}

// look takes the pair on disk if it is fit to replace the one served.
func (f *Follower) look() {
	now := f.now()
	found, err := load(f.dir)
	if err == nil {
		if unfit := f.fit(found, now); unfit != nil && f.Ready(now) == nil {
			err = fmt.Errorf("keep certificate %s: %w", f.served.Load().Serial, unfit)
		}
	}
	if err != nil {
		f.failures.Add(1)
		f.fault.Store(&err)
		if text := err.Error(); text != f.complaint {
			f.complaint = text
			f.log.Error(err, "the key pair on disk cannot be served", "directory", f.dir, "serving", f.serial())
		}
		return
	}
	f.complaint = ""
	f.fault.Store(nil)
	if before := f.served.Swap(found); before == nil || before.Serial != found.Serial {
		f.log.Info("serving certificate", "serial", found.Serial, "notAfter", found.NotAfter.UTC().Format(time.RFC3339))
		if unfit := f.fit(found, now); unfit != nil {
			f.log.Error(unfit, "no client will accept the certificate served", "directory", f.dir)
		}
	}
}

func (f *Follower) serial() string {
	if pair := f.served.Load(); pair != nil {
		return pair.Serial
	}
	return "none"
}

func load(dir string) (*Pair, error) {
	certificate, err := os.ReadFile(filepath.Join(dir, CertificateFile))
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("match %s and %s: %w", CertificateFile, KeyFile, err)
	}
	leaf := pair.Leaf
	return &Pair{Serial: fmt.Sprintf("%X", leaf.SerialNumber.Bytes()), NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, certificate: &pair}, nil
}
