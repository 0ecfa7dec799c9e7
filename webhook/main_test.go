package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
	"github.com/c5c3/openstack-upgrade/test/free"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

func TestAFlagWithANonsenseValueEndsTheProcessWithOneLine(t *testing.T) {
	for argument, says := range map[string]string{
		"--nonsense":                        "unknown flag: --nonsense",
		"--shutdown-delay=soon":             `invalid argument "soon" for "--shutdown-delay" flag: time: invalid duration "soon"`,
		"--shutdown-delay=-1s":              "--shutdown-delay -1s: must not be negative",
		"--shutdown-timeout=0s":             "--shutdown-timeout 0s: must be more than 0",
		"--log-level=loud":                  `log level "loud" is none of error, info, debug`,
		"--log-format=xml":                  `log format "xml" is none of json, text`,
		"--listen-address=9443":             `--listen-address "9443": must be HOST:PORT or :PORT`,
		"--listen-address=":                 `--listen-address "": must be HOST:PORT or :PORT`,
		"--listen-address=example.org:9443": `--listen-address "example.org:9443": "example.org" is not an IP address`,
		"--health-address=:99999":           `--health-address ":99999": port "99999" is not a number from 1 to 65535`,
		"--health-address=[::1]:http":       `--health-address "[::1]:http": port "http" is not a number from 1 to 65535`,
		"--metrics-address=:8081":           `--metrics-address ":8081": is the same as --health-address`,
		"--tls-dir=":                        `--tls-dir "": name the directory of tls.crt and tls.key`,
		"--enable-http2=perhaps":            `invalid argument "perhaps" for "--enable-http2" flag: strconv.ParseBool: parsing "perhaps": invalid syntax`,
		"serve":                             `argument "serve" is not understood; webhook --help tells what is`,
	} {
		t.Run(argument, func(t *testing.T) {
			var out, complaints bytes.Buffer
			assert.Equal(t, exitUsage, run(context.Background(), []string{argument}, &out, &complaints))
			assert.Equal(t, "webhook: "+says+"\n", complaints.String())
			assert.Empty(t, out.String())
		})
	}
}

func TestHelpAndVersionAreNoErrors(t *testing.T) {
	var out, complaints bytes.Buffer
	assert.Zero(t, run(context.Background(), []string{"version"}, &out, &complaints))
	assert.Equal(t, version+"\n", out.String())
	out.Reset()
	assert.Zero(t, run(context.Background(), []string{"--help"}, &out, &complaints))
	assert.Contains(t, out.String(), "--reject-abort-while-contracting")
	assert.Empty(t, complaints.String())
}

func TestTheDefaultsAreThoseOfTheManifests(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, server.Config{ListenAddress: ":9443", HealthAddress: ":8081", MetricsAddress: ":8080",
		ShutdownDelay: 5 * time.Second, ShutdownTimeout: 20 * time.Second, Version: version}, o.server)
	assert.Equal(t, "/etc/webhook/tls", o.tlsDir)
	assert.Empty(t, o.tlsName)
	assert.False(t, o.policy.RejectAbortWhileContracting)
}

func TestTheProgramServesUntilItIsToldToStop(t *testing.T) {
	volume := mint.Mount(t)
	volume.Update(t, mint.Valid(t, 1, time.Hour))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan int, 1)
	reviews, health, metrics := free.Address(t), free.Address(t), free.Address(t)
	go func() {
		ended <- run(ctx, []string{"--tls-dir", volume.Dir, "--listen-address=" + reviews, "--health-address=" + health, "--metrics-address=" + metrics,
			"--shutdown-delay=0s", "--log-level=error"}, io.Discard, io.Discard)
	}()
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK
	}, 5*time.Second, 5*time.Millisecond)

	var complaints strings.Builder
	assert.Equal(t, exitFailed, run(ctx, []string{"--tls-dir", volume.Dir, "--listen-address=" + reviews, "--health-address=" + free.Address(t), "--log-level=error"}, io.Discard, &complaints),
		"a port in use ends the second one")
	cancel()
	assert.Zero(t, <-ended)
}
