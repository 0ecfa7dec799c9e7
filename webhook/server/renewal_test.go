package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/certs/serving"
	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
)

// load is a number of callers that share one pace: each takes the next moment
// and waits for it, and who is late does not wait. Most keep their connection,
// some shake hands for every call, so that a new certificate is met.
type load struct {
	pace  time.Duration
	began time.Time
	moved atomic.Int64
	calls atomic.Int64
	// seen is when each serial was first met.
	seen   sync.Map
	failed chan error
}

func (l *load) call(ctx context.Context, c *http.Client, url string) {
	for ctx.Err() == nil {
		if early := time.Until(l.began.Add(time.Duration(l.moved.Add(1)) * l.pace)); early > 0 {
			time.Sleep(early)
		}
		code, answer, serial, err := post(c, url, deletion)
		if err != nil || code != http.StatusOK || !strings.Contains(answer, `"allowed":true`) {
			l.failed <- fmt.Errorf("%w %d %s", err, code, answer)
			return
		}
		l.seen.LoadOrStore(serial, time.Now())
		l.calls.Add(1)
	}
}

func TestACertificateIsRenewedUnderAThousandCallsASecondWithoutAFailedOne(t *testing.T) {
	const callers, shaking, renewals, within = 24, 2, 4, 12 * time.Second
	pairs := make([]mint.Pair, renewals+1)
	for i := range pairs {
		pairs[i] = mint.Valid(t, int64(i+1), time.Hour)
	}
	w := start(t, nil, Config{}, pairs[0])
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := &load{pace: time.Second / 1000, began: time.Now(), failed: make(chan error, callers)}
	var all sync.WaitGroup
	for i := range callers {
		c := client(t, i >= shaking, pairs...)
		all.Go(func() { l.call(ctx, c, w.url()) })
	}
	time.Sleep(500 * time.Millisecond)
	for _, pair := range pairs[1:] {
		torn := pair
		torn.Certificate = pairs[0].Certificate
		w.volume.Update(t, torn)
		w.volume.Update(t, pair)
		changed := time.Now()
		require.Eventually(t, func() bool { _, seen := l.seen.Load(pair.Serial); return seen || len(l.failed) > 0 }, within, 5*time.Millisecond, "serial %s", pair.Serial)
		if met, seen := l.seen.Load(pair.Serial); seen {
			t.Logf("certificate %s was met %s after it lay on disk", pair.Serial, met.(time.Time).Sub(changed).Round(time.Millisecond))
		}
		time.Sleep(500 * time.Millisecond)
	}
	cancel()
	all.Wait()
	close(l.failed)
	for err := range l.failed {
		t.Error(err)
	}
	t.Logf("%d calls, %.0f a second", l.calls.Load(), float64(l.calls.Load())/time.Since(l.began).Seconds())
	assert.Greater(t, l.calls.Load(), int64(100))
	_, text := w.readiness(t)
	assert.Equal(t, "ok\n", text)
}

func TestAPairThatCannotBeServedLeavesTheLastGoodOneAndIsToldEverywhere(t *testing.T) {
	good := mint.Valid(t, 1, time.Hour)
	other := mint.Valid(t, 2, time.Hour)
	for what, c := range map[string]struct {
		lay  func(t *testing.T, v *mint.Volume)
		says string
	}{
		"torn": {func(t *testing.T, v *mint.Volume) {
			v.Update(t, mint.Pair{Certificate: other.Certificate, Key: good.Key})
		}, "private key does not match public key"},
		"expired": {func(t *testing.T, v *mint.Volume) {
			v.Update(t, mint.Between(t, 3, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)))
		}, "certificate 03 expired at"},
		"for another name":  {func(t *testing.T, v *mint.Volume) { v.Update(t, mint.Named(t, 4, "other.example.org")) }, "certificate 04 is not for localhost but for other.example.org"},
		"with a key unread": {func(t *testing.T, v *mint.Volume) { v.Update(t, other); spoil(t, v, serving.KeyFile) }, "read key: "},
		"without its key": {func(t *testing.T, v *mint.Volume) {
			require.NoError(t, os.Remove(filepath.Join(v.Dir, "..data", serving.KeyFile)))
		}, "read key: "},
		"with nothing left": {func(t *testing.T, v *mint.Volume) { require.NoError(t, os.Remove(filepath.Join(v.Dir, "..data"))) }, "read certificate: "},
		"with a key that is none": {func(t *testing.T, v *mint.Volume) {
			v.Update(t, mint.Pair{Certificate: other.Certificate, Key: []byte("key")})
		}, "failed to find any PEM data in key input"},
	} {
		t.Run(what, func(t *testing.T) {
			w := start(t, nil, Config{}, good)
			require.Eventually(t, func() bool { _, text := w.readiness(t); return text == "ok\n" }, soon, 5*time.Millisecond)
			w.metric(t, MetricCertificateFault+" 0\n")
			c.lay(t, w.volume)
			require.Eventually(t, func() bool { return w.certificate.Fault() != nil }, soon, 5*time.Millisecond)
			code, text := w.readiness(t)
			assert.Equal(t, http.StatusOK, code)
			assert.Contains(t, text, "ok\nbut the key pair on disk cannot be served, certificate 01 is kept: ")
			assert.Contains(t, text, c.says)
			w.metric(t, MetricCertificateFault+" 1\n")
			w.metric(t, MetricCertificateNotAfter+" "+strconv.FormatFloat(float64(w.certificate.Served().NotAfter.Unix()), 'g', -1, 64)+"\n")
			_, answer, serial, err := post(client(t, false, good), w.url(), deletion)
			require.NoError(t, err)
			assert.Contains(t, answer, `"allowed":true`)
			assert.Equal(t, "01", serial)

			w.volume.Update(t, other)
			require.Eventually(t, func() bool { _, text := w.readiness(t); return text == "ok\n" && w.certificate.Served().Serial == "02" }, soon, 5*time.Millisecond, "healed")
			w.metric(t, MetricCertificateFault+" 0\n")
		})
	}
}

// spoil puts a directory where a file is expected: whoever runs the test
// may read every file.
func spoil(t *testing.T, v *mint.Volume, file string) {
	t.Helper()
	path := filepath.Join(v.Dir, "..data", file)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o755))
}

func TestAProcessThatBeginsWithAPairThatNobodyAcceptsIsNotReady(t *testing.T) {
	for says, pair := range map[string]mint.Pair{
		"certificate 01 expired at ":                                      mint.Between(t, 1, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)),
		"certificate 02 is not for localhost but for other.example.org\n": mint.Named(t, 2, "other.example.org"),
	} {
		w := start(t, nil, Config{}, pair)
		require.Eventually(t, func() bool { _, text := w.readiness(t); return strings.HasPrefix(text, "not ready: "+says) }, soon, 5*time.Millisecond, says)
		code, _ := w.readiness(t)
		assert.Equal(t, http.StatusServiceUnavailable, code)
	}
}
