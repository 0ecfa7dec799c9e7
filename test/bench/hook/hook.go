// Package hook runs the webhook the way a pod does, as a process of its own with the limits of the manifest, and asks
// it the way the API server does: over a connection that is kept, with TLS, HTTP/1.1 and one review at a time.
package hook

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
	"github.com/c5c3/openstack-upgrade/test/free"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

// Hook is a webhook that runs and is ready.
type Hook struct {
	// Address takes reviews; Pair is what it serves and what to trust.
	Address string
	Pair    mint.Pair

	cmd *exec.Cmd
}

// URL is where the API server is told to send reviews.
func (h *Hook) URL() string {
	return strings.Replace("https://"+h.Address+server.ReviewPath, "127.0.0.1", "localhost", 1) // the name in the certificate
}

// Start builds the webhook as it is shipped and runs it until the test ends. It has the memory limit of the manifest
// and, so that a rate is a rate per core, as many cores as given.
func Start(t testing.TB, cores int) *Hook {
	t.Helper()
	root, err := binaries.Root()
	must(t, err)
	binary := filepath.Join(t.TempDir(), "webhook")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./webhook")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the webhook: %v\n%s", err, out)
	}
	volume := mint.Mount(t)
	h := &Hook{Pair: mint.Valid(t, 1, time.Hour)}
	volume.Update(t, h.Pair)
	addresses := make([]string, 3)
	for i := range addresses {
		addresses[i] = free.Address(t)
	}
	h.Address = addresses[0]
	h.cmd = exec.Command(binary, "--tls-dir="+volume.Dir, "--listen-address="+addresses[0], "--health-address="+addresses[1],
		"--metrics-address="+addresses[2], "--shutdown-delay=0s", "--log-level=error")
	h.cmd.Env = []string{"GOMAXPROCS=" + strconv.Itoa(cores), "GOMEMLIMIT=96MiB"}
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, h.cmd.Start())
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill() // it may have ended by now
		_ = h.cmd.Wait()
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if h.ready(t.Context(), addresses[1]) {
			return h
		}
		if time.Now().After(deadline) {
			t.Fatal("the webhook is not ready after 20 seconds")
		}
	}
}

func (h *Hook) ready(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Resident is the memory that the process has now, and the most it has had, in MiB.
func (h *Hook) Resident(t testing.TB) (now, most float64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	must(t, err)
	for line := range strings.Lines(string(status)) {
		var kilobytes float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kilobytes); n == 1 {
			now = kilobytes / 1024
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); n == 1 {
			most = kilobytes / 1024
		}
	}
	return now, most
}

// CPU is the processor time that the process has taken.
func (h *Hook) CPU(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid))
	must(t, err)
	// The second field is the name, in parentheses; the two times are the 12th and 13th after it, in hundredths.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		must(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// Caller is one connection that is kept.
type Caller struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
}

// Dial opens a connection on which one review is sent again and again. It comes from an address of its own, as that of
// an API server does.
func (h *Hook) Dial(t testing.TB, review []byte) *Caller {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := tls.DialWithDialer(dialer, "tcp", h.Address, &tls.Config{RootCAs: mint.Pool(h.Pair), ServerName: "localhost"})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	head := fmt.Sprintf("POST %s?timeout=3s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nAccept-Encoding: gzip\r\n\r\n", server.ReviewPath, len(review))
	return &Caller{conn: conn, in: bufio.NewReaderSize(conn, 16<<10), request: append([]byte(head), review...)}
}

// Ask sends the review and tells whether it was admitted. A caller costs little, so that what is measured is the
// webhook: the answer is searched for the verdict and not decoded.
func (c *Caller) Ask() (admitted bool, err error) {
	if _, err := c.conn.Write(c.request); err != nil {
		return false, fmt.Errorf("send a review: %w", err)
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return false, fmt.Errorf("read the answer: %w", err)
		}
		text := string(line)
		if text == "\r\n" {
			break
		}
		if value, found := strings.CutPrefix(text, "Content-Length: "); found {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return false, fmt.Errorf("read the answer: %w", err)
			}
		}
	}
	if length < 0 || length > c.in.Size() {
		return false, fmt.Errorf("read the answer: it has %d bytes", length)
	}
	body, err := c.in.Peek(length)
	if err != nil {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	admitted = strings.Contains(string(body), `"allowed":true`)
	_, err = c.in.Discard(length)
	return admitted, err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
