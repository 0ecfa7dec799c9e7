package serving

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
)

const soon = 5 * time.Second

// following starts a follower that runs until the test ends.
func following(t *testing.T, dir string, log logr.Logger) *Follower {
	t.Helper()
	f := Follow(dir, log, time.Now)
	run(t, f)
	return f
}

func run(t *testing.T, f *Follower) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
}

func serves(t *testing.T, f *Follower, serial string) {
	t.Helper()
	require.Eventually(t, func() bool { return f.Served() != nil && f.Served().Serial == serial }, soon, 5*time.Millisecond, "serial %s", serial)
	certificate, err := f.GetCertificate(nil)
	require.NoError(t, err)
	assert.Equal(t, f.Served().NotAfter, certificate.Leaf.NotAfter)
}

func TestARenewedPairIsServedWhenTheSecretIsSwapped(t *testing.T) {
	volume := mint.Mount(t)
	volume.Update(t, mint.Valid(t, 0x0a01, time.Hour))
	f := following(t, volume.Dir, logr.Discard())
	assert.Equal(t, "0A01", f.Served().Serial)
	for serial := int64(0x0a02); serial < 0x0a05; serial++ {
		next := mint.Valid(t, serial, time.Hour)
		volume.Update(t, next)
		serves(t, f, next.Serial)
	}
	assert.NoError(t, f.Ready(time.Now()))
	assert.Zero(t, f.Failures())
}

func TestAPairWrittenInPlaceIsServedOnceItIsWhole(t *testing.T) {
	dir := t.TempDir()
	first, second := mint.Valid(t, 1, time.Hour), mint.Valid(t, 2, time.Hour)
	write(t, dir, first.Certificate, first.Key)
	var logged lines
	f := following(t, dir, logged.logger())

	require.NoError(t, os.WriteFile(filepath.Join(dir, KeyFile), second.Key, 0o600))
	require.Eventually(t, func() bool { return f.Failures() > 0 }, soon, 5*time.Millisecond)
	serves(t, f, first.Serial)
	assert.NoError(t, f.Ready(time.Now()), "a torn pair does not make the good one worse")
	// It is counted before it is logged.
	require.Eventually(t, func() bool { return strings.Contains(logged.String(), "private key does not match public key") }, soon, 5*time.Millisecond)

	require.NoError(t, os.WriteFile(filepath.Join(dir, CertificateFile), second.Certificate, 0o600))
	serves(t, f, second.Serial)
}

func TestWhatIsNoPairNeverReplacesTheLastGoodOne(t *testing.T) {
	good, other := mint.Valid(t, 1, time.Hour), mint.Valid(t, 2, time.Hour)
	expired := mint.Between(t, 3, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	foreign := mint.Named(t, 5, "elsewhere.example.org")
	clients := mint.ForClients(t, 6)
	early := mint.Between(t, 4, time.Now().Add(time.Hour), time.Now().Add(2*time.Hour))
	for name, wrong := range map[string]struct {
		certificate, key []byte
		says             string
	}{
		"key of another pair": {other.Certificate, good.Key, "private key does not match public key"},
		"empty certificate":   {nil, other.Key, "failed to find any PEM data in certificate input"},
		"half a certificate":  {other.Certificate[:200], other.Key, "failed to find any PEM data in certificate input"},
		"empty key":           {other.Certificate, nil, "failed to find any PEM data in key input"},
		"for another name":    {foreign.Certificate, foreign.Key, "keep certificate 01: certificate 05 is not for localhost but for elsewhere.example.org"},
		"for clients":         {clients.Certificate, clients.Key, "keep certificate 01: certificate 06 is not for servers: its extended key usage lacks server authentication"},
		"expired":             {expired.Certificate, expired.Key, "keep certificate 01: certificate 03 expired at"},
		"not yet valid":       {early.Certificate, early.Key, "keep certificate 01: certificate 04 is not valid before"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, good.Certificate, good.Key)
			var logged lines
			f := Follow(dir, logged.logger(), time.Now, "localhost")
			require.NoError(t, f.Fault())

			write(t, dir, wrong.certificate, wrong.key)
			f.look()
			f.look()
			assert.Equal(t, good.Serial, f.Served().Serial)
			assert.NoError(t, f.Ready(time.Now()))
			assert.Equal(t, uint64(2), f.Failures(), "counted every time")
			assert.Equal(t, 1, logged.count("cannot be served"), "logged once")
			assert.Contains(t, logged.String(), wrong.says)
			require.ErrorContains(t, f.Fault(), wrong.says)

			write(t, dir, other.Certificate, other.Key)
			f.look()
			assert.Equal(t, other.Serial, f.Served().Serial)
			require.NoError(t, f.Fault(), "healed")
		})
	}
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	dir := t.TempDir()
	good := mint.Valid(t, 1, time.Hour)
	write(t, dir, good.Certificate, good.Key)
	var logged lines
	f := Follow(dir, logged.logger(), time.Now)
	require.NoError(t, os.Remove(filepath.Join(dir, KeyFile)))
	require.NoError(t, os.Mkdir(filepath.Join(dir, KeyFile), 0o755))
	f.look()
	assert.Equal(t, good.Serial, f.Served().Serial)
	assert.Contains(t, logged.String(), "read key: ")
	assert.Contains(t, logged.String(), filepath.Join(dir, KeyFile))
}

func TestWithoutAGoodPairItIsNotReadyAndSaysWhy(t *testing.T) {
	volume := mint.Mount(t)
	f := Follow(volume.Dir, logr.Discard(), time.Now)
	require.EqualError(t, f.Ready(time.Now()), "no certificate could be loaded from "+volume.Dir+" yet")
	_, err := f.GetCertificate(nil)
	require.EqualError(t, err, "no certificate is loaded yet")

	end := time.Now().Add(-time.Hour).UTC()
	volume.Update(t, mint.Between(t, 7, end.Add(-time.Hour), end))
	f.look()
	assert.Equal(t, "07", f.Served().Serial, "a client is told better by an expired certificate than by none")
	require.EqualError(t, f.Ready(time.Now()), "certificate 07 expired at "+end.Format(time.RFC3339))

	pair := mint.Valid(t, 8, time.Hour)
	volume.Update(t, pair)
	f.look()
	require.NoError(t, f.Ready(time.Now()))
	require.ErrorContains(t, f.Ready(time.Now().Add(2*time.Hour)), "certificate 08 expired at")
}

func TestAPairForAnotherNameIsServedForWantOfABetterOneAndIsNotReady(t *testing.T) {
	volume := mint.Mount(t)
	volume.Update(t, mint.Named(t, 1, "elsewhere.example.org"))
	var logged lines
	f := Follow(volume.Dir, logged.logger(), time.Now, "localhost")
	assert.Equal(t, "01", f.Served().Serial)
	says := "certificate 01 is not for localhost but for elsewhere.example.org"
	require.EqualError(t, f.Ready(time.Now()), says)
	assert.Contains(t, logged.String(), says)
	assert.NoError(t, Follow(volume.Dir, logr.Discard(), time.Now).Ready(time.Now()), "without a name given every name is right")

	volume.Update(t, mint.Valid(t, 2, time.Hour))
	f.look()
	assert.Equal(t, "02", f.Served().Serial)
	require.NoError(t, f.Ready(time.Now()))
}

func TestADirectoryThatComesOrIsReplacedLaterIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "late")
	f := Follow(dir, logr.Discard(), time.Now)
	f.recheck = 20 * time.Millisecond
	run(t, f)
	for serial := int64(1); serial < 3; serial++ {
		pair := mint.Valid(t, serial, time.Hour)
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.Mkdir(dir, 0o755))
		write(t, dir, pair.Certificate, pair.Key)
		serves(t, f, pair.Serial)
	}
}

func write(t *testing.T, dir string, certificate, key []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, CertificateFile), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, KeyFile), key, 0o600))
}

// lines collects what is logged.
type lines struct {
	lock sync.Mutex
	text []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.lock.Lock()
		defer l.lock.Unlock()
		l.text = append(l.text, prefix+" "+args)
	}, funcr.Options{})
}

func (l *lines) String() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return strings.Join(l.text, "\n")
}

func (l *lines) count(word string) int { return strings.Count(l.String(), word) }
