package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
	"github.com/c5c3/openstack-upgrade/test/free"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

// A webhook whose memory is measured is a process of its own: this test binary
// once more, told by its environment to be the webhook.
const asWebhook = "ACT_AS_WEBHOOK"

func TestMain(m *testing.M) {
	if os.Getenv(asWebhook) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// victim is a webhook in a process of its own.
type victim struct {
	reviews, health, metrics string
	pid                      int
	pair                     mint.Pair
}

func attacked(t *testing.T) victim {
	t.Helper()
	volume := mint.Mount(t)
	v := victim{reviews: free.Address(t), health: free.Address(t), metrics: free.Address(t), pair: mint.Valid(t, 1, time.Hour)}
	volume.Update(t, v.pair)
	program, err := os.Executable()
	require.NoError(t, err)
	child := exec.Command(program, "--tls-dir="+volume.Dir, "--listen-address="+v.reviews, "--health-address="+v.health, "--metrics-address="+v.metrics, "--log-level=error")
	child.Env = append(os.Environ(), asWebhook+"=yes")
	deployment, err := os.ReadFile("../deploy/base/webhook/deployment.yaml")
	require.NoError(t, err)
	given := regexp.MustCompile(`\{name: (GO\w+), value: "?(\w+)"?\}`).FindAllSubmatch(deployment, -1)
	require.Len(t, given, 2)
	for _, variable := range given {
		child.Env = append(child.Env, fmt.Sprintf("%s=%s", variable[1], variable[2]))
	}
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	v.pid = child.Process.Pid
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + v.health + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK
	}, 20*time.Second, 20*time.Millisecond)
	return v
}

// peak is the most memory that was resident at any time, in MiB.
func (v victim) peak(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.pid))
	require.NoError(t, err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(t, found)
	kilobytes, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return kilobytes >> 10
}

func (v victim) secure() *tls.Config {
	return &tls.Config{RootCAs: mint.Pool(v.pair), ServerName: "localhost"}
}

// dial connects as an attacker: from an address that is not the API server's.
func (v victim) dial() (*tls.Conn, error) {
	return tls.DialWithDialer(elsewhere, "tcp", v.reviews, v.secure())
}

var elsewhere = &net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}

const deletion = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"DELETE","kind":{"group":"openstack.c5c3.io","version":"v1alpha1","kind":"Glance"}}}`

// answers tells whether an API server is still answered.
func (v victim) answers(t *testing.T) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: v.secure(), DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	response, err := client.Post("https://"+v.reviews+server.ReviewPath, "application/json", strings.NewReader(deletion))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"allowed":true`)
}

func head(length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", server.ReviewPath, length)
}

// spray lets as many attackers attack, a few at a time, and keeps what they
// open until the test ends.
func spray(t *testing.T, attackers int, attack func() (io.Closer, error)) {
	t.Helper()
	turns := make(chan struct{}, 32)
	var lock sync.Mutex
	var kept []io.Closer
	t.Cleanup(func() {
		for _, c := range kept {
			_ = c.Close()
		}
	})
	var all sync.WaitGroup
	for range attackers {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			// An attacker who is thrown out has had his effect.
			if c, err := attack(); err == nil {
				lock.Lock()
				kept = append(kept, c)
				lock.Unlock()
			}
		})
	}
	all.Wait()
}

// bound is what no attack may exceed, in MiB: less than the container may have.
const bound = 72

func TestMemoryStaysBoundedUnderAttackAndTheAPIServerIsAnswered(t *testing.T) {
	large := strings.Repeat(" ", 3<<20-len(deletion)) + deletion
	for what, c := range map[string]struct {
		attackers int
		attack    func(v victim) (io.Closer, error)
	}{
		"connections that say nothing": {4000, func(v victim) (io.Closer, error) {
			return elsewhere.Dial("tcp", v.reviews)
		}},
		"connections that idle": {600, func(v victim) (io.Closer, error) {
			return v.dial()
		}},
		"headers without an end": {600, func(v victim) (io.Closer, error) {
			c, err := v.dial()
			if err == nil {
				_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nX: %s", server.ReviewPath, strings.Repeat("x", 12<<10))
			}
			return c, err
		}},
		"small bodies without an end": {1500, func(v victim) (io.Closer, error) {
			c, err := v.dial()
			if err == nil {
				_, err = io.WriteString(c, head(60<<10)+strings.Repeat(" ", 59<<10))
			}
			return c, err
		}},
		"large bodies without an end": {300, func(v victim) (io.Closer, error) {
			c, err := v.dial()
			if err == nil {
				_, err = io.WriteString(c, head(3<<20)+strings.Repeat(" ", 64<<10))
			}
			return c, err
		}},
		"large bodies at once": {100, func(v victim) (io.Closer, error) {
			c, err := v.dial()
			if err == nil {
				_, err = io.WriteString(c, head(len(large))+large)
			}
			return c, err
		}},
		"bodies that are too large": {60, func(v victim) (io.Closer, error) {
			c, err := v.dial()
			if err == nil {
				_, err = io.WriteString(c, strings.Replace(head(0), "Content-Length: 0", "Transfer-Encoding: chunked", 1)+fmt.Sprintf("%x\r\n", 10<<20)+large+large+large)
			}
			return c, err
		}},
	} {
		t.Run(what, func(t *testing.T) {
			v := attacked(t)
			v.answers(t)
			before := v.peak(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				spray(t, c.attackers, func() (io.Closer, error) { return c.attack(v) })
			}()
			for attacking := true; attacking; {
				select {
				case <-done:
					attacking = false
				case <-time.After(100 * time.Millisecond):
				}
				v.answers(t)
			}
			peak := v.peak(t)
			t.Logf("%d MiB before, %d MiB at most", before, peak)
			assert.Less(t, peak, bound)
		})
	}
}
