package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/c5c3/openstack-upgrade/certs/serving"
	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

const soon = 5 * time.Second

// deletion is the shortest review that is admitted.
const deletion = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"DELETE","kind":{"group":"openstack.c5c3.io","version":"v1alpha1","kind":"Glance"}}}`

// world is one running server and the volume it follows.
type world struct {
	*Server
	volume *mint.Volume
	stop   context.CancelFunc
	ended  chan error
}

func start(t *testing.T, judge Judge, config Config, pairs ...mint.Pair) *world {
	t.Helper()
	w := &world{volume: mint.Mount(t), ended: make(chan error, 1)}
	for _, pair := range pairs {
		w.volume.Update(t, pair)
	}
	config.ListenAddress, config.HealthAddress, config.MetricsAddress = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	config.Version = "v1.2.3"
	if config.ShutdownTimeout == 0 {
		config.ShutdownTimeout = soon
	}
	if judge == nil {
		judge = admission.New(admission.Policy{}, admission.Kinds...)
	}
	s, err := Listen(config, judge, serving.Follow(w.volume.Dir, logr.Discard(), time.Now, "localhost"), logr.Discard())
	require.NoError(t, err)
	w.Server = s
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	finished := make(chan struct{})
	go func() {
		w.ended <- s.Run(ctx)
		close(finished)
	}()
	t.Cleanup(func() {
		cancel()
		<-finished
	})
	return w
}

func (w *world) url() string { return "https://" + w.ReviewAddress() + ReviewPath }

// client trusts the pairs and keeps connections or opens one for every call.
func client(t *testing.T, keep bool, pairs ...mint.Pair) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: !keep, TLSClientConfig: &tls.Config{RootCAs: mint.Pool(pairs...), ServerName: "localhost"}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * soon}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func (w *world) readiness(t *testing.T) (int, string) {
	t.Helper()
	return get(t, "http://"+w.HealthAddress()+"/readyz")
}

func (w *world) metric(t *testing.T, line string) {
	t.Helper()
	_, text := get(t, "http://"+w.MetricsAddress()+"/metrics")
	assert.Contains(t, text, line)
}

func post(c *http.Client, url, body string) (code int, answer string, serial string, err error) {
	response, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), fmt.Sprintf("%X", response.TLS.PeerCertificates[0].SerialNumber.Bytes()), err
}

func TestReadinessFollowsTheCertificate(t *testing.T) {
	w := start(t, nil, Config{})
	require.Eventually(t, func() bool { code, _ := get(t, "http://"+w.HealthAddress()+"/healthz"); return code == http.StatusOK }, soon, time.Millisecond)
	code, text := w.readiness(t)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "not ready: no certificate could be loaded from "+w.volume.Dir+" yet\n", text)
	w.metric(t, MetricCertificateNotAfter+" 0\n")

	end := time.Now().Add(-time.Minute)
	w.volume.Update(t, mint.Between(t, 1, end.Add(-time.Hour), end))
	require.Eventually(t, func() bool { _, text := w.readiness(t); return strings.Contains(text, "certificate 01 expired at") }, soon, 5*time.Millisecond)

	good := mint.Valid(t, 2, time.Hour)
	w.volume.Update(t, good)
	require.Eventually(t, func() bool { code, _ := w.readiness(t); return code == http.StatusOK }, soon, 5*time.Millisecond)
	_, _, serial, err := post(client(t, false, good), w.url(), deletion)
	require.NoError(t, err)
	assert.Equal(t, "02", serial)

	torn := mint.Valid(t, 3, time.Hour)
	torn.Key = good.Key
	w.volume.Update(t, torn)
	require.Eventually(t, func() bool { return w.certificate.Failures() > 0 }, soon, 5*time.Millisecond)
	code, _ = w.readiness(t)
	assert.Equal(t, http.StatusOK, code, "the last good pair is still served")
	_, _, serial, err = post(client(t, false, good), w.url(), deletion)
	require.NoError(t, err)
	assert.Equal(t, "02", serial)
	_, text = get(t, "http://"+w.MetricsAddress()+"/metrics")
	assert.NotContains(t, text, MetricCertificateFaults+" 0\n")
	assert.Contains(t, text, MetricCertificateFaults+" ")
	assert.NotContains(t, text, MetricCertificateNotAfter+" 0\n")
}

// slow answers when told to.
type slow struct {
	asked  chan struct{}
	answer chan struct{}
}

func (s slow) Review([]byte) (*admissionv1.AdmissionReview, admission.Decision, error) {
	s.asked <- struct{}{}
	<-s.answer
	return &admissionv1.AdmissionReview{Response: &admissionv1.AdmissionResponse{Allowed: true}}, admission.Decision{Verdict: admission.Allowed}, nil
}

func (s slow) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.asked:
	case <-time.After(soon):
		t.Fatal("the call never arrived")
	}
}

func TestStoppingWithdrawsReadinessThenFinishesWhatIsAsked(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	judge := slow{asked: make(chan struct{}, 2), answer: make(chan struct{})}
	release := sync.OnceFunc(func() { close(judge.answer) })
	defer release()
	w := start(t, judge, Config{ShutdownDelay: 300 * time.Millisecond}, pair)
	c := client(t, true, pair)
	answers := make(chan error, 2)
	call := func() {
		code, answer, _, err := post(c, w.url(), deletion)
		if err == nil && (code != http.StatusOK || !strings.Contains(answer, `"allowed":true`)) {
			err = fmt.Errorf("%d %s", code, answer)
		}
		answers <- err
	}
	go call()
	judge.wait(t)

	w.stop()
	require.Eventually(t, func() bool { _, text := w.readiness(t); return text == "not ready: shutting down\n" }, soon, time.Millisecond)
	go call() // calls that come before the cluster has noticed are answered too
	judge.wait(t)
	select {
	case err := <-w.ended:
		t.Fatalf("ended with calls open: %v", err)
	case <-time.After(600 * time.Millisecond): // well after the delay
	}
	_, err := net.DialTimeout("tcp", w.ReviewAddress(), time.Second)
	require.Error(t, err, "no new connection is taken after the delay")
	release()
	require.NoError(t, <-answers)
	require.NoError(t, <-answers)
	require.NoError(t, <-w.ended)
}

func TestACallerIsSentElsewhereWhileStopping(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	w := start(t, nil, Config{}, pair)
	c := client(t, true, pair)
	header := func() bool {
		response, err := c.Post(w.url(), "application/json", strings.NewReader(deletion))
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		require.Equal(t, http.StatusOK, response.StatusCode)
		return response.Close
	}
	assert.False(t, header())
	w.draining.Store(true)
	assert.True(t, header())
}

func TestACallThatNeverEndsIsCutAndSaid(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	judge := slow{asked: make(chan struct{}, 1), answer: make(chan struct{})}
	w := start(t, judge, Config{ShutdownTimeout: 50 * time.Millisecond}, pair)
	c := client(t, true, pair)
	cut := make(chan error, 1)
	go func() {
		_, _, _, err := post(c, w.url(), deletion)
		cut <- err
	}()
	judge.wait(t)
	w.stop()
	require.EqualError(t, <-w.ended, "drain: calls that were still open after 50ms have been cut")
	require.Error(t, <-cut)
	close(judge.answer)
}

// A client opens connections in advance and keeps them: the first call of one
// may come long after it was opened, and is not repeated when it is cut.
func TestAConnectionThatWasOpenedInAdvanceIsThereWhenItIsNeeded(t *testing.T) {
	t.Parallel()
	pair := mint.Valid(t, 1, time.Hour)
	w := start(t, nil, Config{}, pair)
	connection, err := tls.Dial("tcp", w.ReviewAddress(), &tls.Config{RootCAs: mint.Pool(pair), ServerName: "localhost"})
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	time.Sleep(headerTimeout - 500*time.Millisecond)
	_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", ReviewPath, len(deletion))
	require.NoError(t, err)
	time.Sleep(time.Second)
	_, err = io.WriteString(connection, deletion)
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusOK, response.StatusCode)
}

func TestAPortInUseIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	_, err = Listen(Config{ListenAddress: "127.0.0.1:0", HealthAddress: taken.Addr().String(), MetricsAddress: "127.0.0.1:0"},
		nil, serving.Follow(t.TempDir(), logr.Discard(), time.Now), logr.Discard())
	require.EqualError(t, err, "listen for health: listen tcp "+taken.Addr().String()+": bind: address already in use")
}

func TestOnlyModernTLSIsSpokenAndHTTP2OnlyIfAsked(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	for _, enabled := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%t", enabled), func(t *testing.T) {
			w := start(t, nil, Config{EnableHTTP2: enabled}, pair)
			dial := func(config *tls.Config) (*tls.Conn, error) {
				config.RootCAs, config.ServerName = mint.Pool(pair), "localhost"
				return tls.Dial("tcp", w.ReviewAddress(), config)
			}
			_, err := dial(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
			require.ErrorContains(t, err, "protocol version")
			connection, err := dial(&tls.Config{MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
			require.NoError(t, err)
			defer func() { _ = connection.Close() }()
			assert.Equal(t, enabled, connection.ConnectionState().NegotiatedProtocol == "h2")
		})
	}
}

func TestWhatIsNoReviewIsTurnedAwayAtTheDoor(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	w := start(t, nil, Config{}, pair)
	c := client(t, true, pair)
	endless := func() io.Reader { return io.LimitReader(spaces{}, 10<<20) }
	for what, wrong := range map[string]struct {
		method, path, media string
		body                io.Reader
		code                int
		reason              admission.Reason
		says                string
	}{
		"get":               {http.MethodGet, ReviewPath, "application/json", nil, http.StatusMethodNotAllowed, WrongMethod, "send an AdmissionReview with POST"},
		"another path":      {http.MethodPost, "/mutate", "application/json", strings.NewReader(deletion), http.StatusNotFound, "", "404 page not found"},
		"yaml":              {http.MethodPost, ReviewPath, "application/yaml", strings.NewReader(deletion), http.StatusUnsupportedMediaType, WrongMediaType, "send the AdmissionReview as application/json"},
		"no content type":   {http.MethodPost, ReviewPath, "", strings.NewReader(deletion), http.StatusUnsupportedMediaType, WrongMediaType, "send the AdmissionReview as application/json"},
		"10 MB":             {http.MethodPost, ReviewPath, "application/json", bytes.NewReader(make([]byte, 10<<20)), http.StatusRequestEntityTooLarge, TooLarge, "the body is larger than 3145728 bytes"},
		"10 MB, undeclared": {http.MethodPost, ReviewPath, "application/json", endless(), http.StatusRequestEntityTooLarge, TooLarge, "the body is larger than 3145728 bytes"},
		"empty":             {http.MethodPost, ReviewPath, "application/json", nil, http.StatusBadRequest, admission.Malformed, "the body is empty: send an AdmissionReview of admission.k8s.io/v1 as JSON"},
	} {
		t.Run(what, func(t *testing.T) {
			request, err := http.NewRequest(wrong.method, "https://"+w.ReviewAddress()+wrong.path, wrong.body)
			require.NoError(t, err)
			if wrong.media != "" {
				request.Header.Set("Content-Type", wrong.media)
			}
			response, err := c.Do(request)
			require.NoError(t, err)
			defer func() { _ = response.Body.Close() }()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, wrong.code, response.StatusCode)
			assert.Equal(t, wrong.says+"\n", string(text))
			if wrong.reason != "" {
				w.metric(t, fmt.Sprintf(`%s{kind="other",operation="other",reason=%q,verdict="error"}`, MetricDecisions, wrong.reason))
			}
		})
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestALargeReviewIsJudgedToo(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	w := start(t, nil, Config{}, pair)
	for _, size := range []int{smallBody - 1, smallBody, smallBody + 1, maxBody} {
		body := deletion + strings.Repeat(" ", size-len(deletion))
		for what, reader := range map[string]io.Reader{"declared": strings.NewReader(body), "chunked": io.MultiReader(strings.NewReader(body))} {
			response, err := client(t, false, pair).Post(w.url(), "application/json", reader)
			require.NoError(t, err)
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Contains(t, string(text), `"allowed":true`, "%d bytes, %s", size, what)
		}
	}
}

func TestSlowLargeBodiesDoNotHoldUpSmallOnes(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	w := start(t, nil, Config{}, pair)
	for range 3 * largePlaces {
		connection, err := tls.Dial("tcp", w.ReviewAddress(), &tls.Config{RootCAs: mint.Pool(pair), ServerName: "localhost"})
		require.NoError(t, err)
		defer func() { _ = connection.Close() }()
		_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", ReviewPath, maxBody)
		require.NoError(t, err)
	}
	code, _, _, err := post(client(t, true, pair), w.url(), deletion)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, code)
}

// Small or large, a body that comes a byte at a time is cut and counted, and
// whoever sends it hears why.
func TestABodyThatDripsInIsCut(t *testing.T) {
	t.Parallel()
	pair := mint.Valid(t, 1, time.Hour)
	w := start(t, nil, Config{}, pair)
	for _, length := range []int{len(deletion), maxBody} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			connection, err := tls.Dial("tcp", w.ReviewAddress(), &tls.Config{RootCAs: mint.Pool(pair), ServerName: "localhost"})
			require.NoError(t, err)
			defer func() { _ = connection.Close() }()
			_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", ReviewPath, length)
			require.NoError(t, err)
			go func() {
				for range 100 {
					if _, err := connection.Write([]byte(" ")); err != nil {
						return
					}
					time.Sleep(200 * time.Millisecond)
				}
			}()
			require.NoError(t, connection.SetReadDeadline(time.Now().Add(2*readTimeout)))
			response, err := http.ReadResponse(bufio.NewReader(connection), nil)
			require.NoError(t, err)
			defer func() { _ = response.Body.Close() }()
			assert.Equal(t, http.StatusRequestTimeout, response.StatusCode)
			assert.True(t, response.Close)
		})
	}
	w.metric(t, MetricDecisions+`{kind="other",operation="other",reason="TooSlow",verdict="error"} 2`)
}

type buggy struct{}

func (buggy) Review([]byte) (*admissionv1.AdmissionReview, admission.Decision, error) {
	panic(errors.New("index out of range"))
}

func TestABugIsAnErrorAnswerWithoutAStackTrace(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	w := start(t, buggy{}, Config{}, pair)
	for range 2 {
		code, text, _, err := post(client(t, true, pair), w.url(), deletion)
		require.NoError(t, err)
		assert.Equal(t, http.StatusInternalServerError, code)
		assert.Equal(t, "a bug in the webhook kept this review from being answered; its log says more\n", text)
	}
	w.metric(t, MetricDecisions+`{kind="other",operation="other",reason="Bug",verdict="error"} 2`)
}

func TestEveryDecisionIsCounted(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	w := start(t, nil, Config{}, pair)
	c := client(t, true, pair)
	glance := func(release string) string {
		return fmt.Sprintf(`{"apiVersion":"openstack.c5c3.io/v1alpha1","kind":"Glance","spec":{"openStackRelease":%q,"image":{"repository":"r","tag":"2026.1"}}}`, release)
	}
	request := func(kind, operation, object string) string {
		return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":%q,"kind":{"group":"openstack.c5c3.io","version":"v1alpha1","kind":%q},"resource":{"group":"openstack.c5c3.io","resource":"glances"},"object":%s}}`, operation, kind, object)
	}
	for _, body := range []string{deletion, request("Glance", "CREATE", glance("2026.1")), request("Glance", "CREATE", glance("2026.2")),
		request("Glance", "CREATE", "[]"), request("Anything", "CREATE", "{}"), request("Glance", "ANYTHING", "{}"), "junk"} {
		_, _, _, err := post(c, w.url(), body)
		require.NoError(t, err)
	}
	for _, line := range []string{
		`{kind="Glance",operation="DELETE",reason="Deletion",verdict="allowed"} 1`,
		`{kind="Glance",operation="CREATE",reason="Accepted",verdict="allowed"} 1`,
		`{kind="Glance",operation="CREATE",reason="ImageReleaseMismatch",verdict="denied"} 1`,
		`{kind="Glance",operation="CREATE",reason="Undecodable",verdict="error"} 1`,
		`{kind="other",operation="CREATE",reason="UnknownRequest",verdict="error"} 1`,
		`{kind="Glance",operation="other",reason="UnknownRequest",verdict="error"} 1`,
		`{kind="other",operation="other",reason="Malformed",verdict="error"} 1`,
	} {
		w.metric(t, MetricDecisions+line)
	}
	w.metric(t, MetricDuration+`_bucket{le="0.0001"}`)
	w.metric(t, MetricDuration+`_count 6`)
	w.metric(t, `version="v1.2.3"} 1`)
}

func TestTheAnswerIsAReviewOfTheSameVersion(t *testing.T) {
	pair := mint.Valid(t, 1, time.Hour)
	w := start(t, nil, Config{}, pair)
	_, text, _, err := post(client(t, true, pair), w.url(), deletion)
	require.NoError(t, err)
	var review admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal([]byte(text), &review))
	assert.Equal(t, "admission.k8s.io/v1", review.APIVersion)
	assert.Equal(t, "u", string(review.Response.UID))
}
