package stage

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServedSerial is the serial number of the certificate that a pod of the webhook hands to who connects now. The
// connection is made as the API server makes it: for the Service's name, trusting the CA in the configuration alone.
func (s *Stage) ServedSerial(ctx context.Context, pod string) (string, error) {
	var configuration admissionv1.ValidatingWebhookConfiguration
	if err := s.Client.Get(ctx, client.ObjectKey{Name: Webhook}, &configuration); err != nil {
		return "", fmt.Errorf("look at the certificate of %s: %w", pod, err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle) {
		return "", errors.New("no CA is in the webhook's configuration")
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	forward := exec.CommandContext(ctx, s.KubectlPath(), "-n", ProductNamespace, "port-forward", "pod/"+pod, ":9443", "--address=127.0.0.1")
	forward.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig())
	out, err := forward.StdoutPipe()
	if err == nil {
		err = forward.Start()
	}
	if err != nil {
		return "", fmt.Errorf("look at the certificate of %s: %w", pod, err)
	}
	defer func() {
		cancel()
		_ = forward.Wait() // it is killed, and says so
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	address, _, found := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " ->")
	if err != nil || !found {
		return "", fmt.Errorf("look at the certificate of %s: kubectl port-forward says %q: %w", pod, line, err)
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: trusted, ServerName: Webhook + "." + ProductNamespace + ".svc", MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("look at the certificate of %s: %w", pod, err)
	}
	defer conn.Close()
	return fmt.Sprintf("%X", conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber), nil
}
