package serving

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
)

// FuzzPair renews a pair with anything. Whatever it is, there is no panic, the last good pair stays unless a whole one has
// come, and a pair that is not served is said to be at fault.
func FuzzPair(f *testing.F) {
	pair := mint.Valid(f, 1, 24*time.Hour)
	certificate, key := pair.Certificate, pair.Key
	f.Add(certificate, key)
	f.Add(certificate, certificate)
	f.Add(certificate[:len(certificate)/2], key)
	f.Add([]byte{}, []byte{})
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), key)
	f.Add(append(append([]byte{}, certificate...), certificate...), key)
	dir := f.TempDir()
	lay := func(t testing.TB, certificate, key []byte) {
		for name, content := range map[string][]byte{CertificateFile: certificate, KeyFile: key} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.Fuzz(func(t *testing.T, renewed, itsKey []byte) {
		lay(t, certificate, key)
		follower := Follow(dir, logr.Discard(), time.Now, "localhost")
		before := follower.Served()
		if before == nil || follower.Ready(time.Now()) != nil {
			t.Fatalf("the good pair is not served: %v", follower.Fault())
		}
		lay(t, renewed, itsKey)
		follower.look()
		after := follower.Served()
		switch {
		case after == nil:
			t.Fatal("nothing is served any more")
		case after != before && follower.Ready(time.Now()) != nil:
			t.Fatalf("a good pair has made room for one that clients refuse: %v", follower.Ready(time.Now()))
		case follower.Fault() != nil && after != before:
			t.Fatalf("what is at fault is served: %v", follower.Fault())
		}
	})
}
