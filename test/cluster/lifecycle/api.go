package lifecycle

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/addons"
	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

// api asks the API server, over the host's port, the few things that up and status want to know.
type api struct {
	client *http.Client
	url    string
}

func dialAPI(layout node.Layout) (api, error) {
	url, ca, pair, err := layout.Admin()
	if err != nil {
		return api{}, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return api{url: url, client: &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}},
	}}, nil
}

func (a api) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	if err != nil {
		return err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

type condition struct{ Type, Status, Message string }

func conditionTrue(conditions []condition, kind string) (ok bool, seen string) {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status == "True", c.Message
		}
	}
	return false, "no condition " + kind + " yet"
}

// nodeReady looks at the node's own word. An API server that does not answer is one more thing to wait for.
func (a api) nodeReady(ctx context.Context) (bool, string, error) {
	var n struct {
		Status struct{ Conditions []condition }
	}
	if err := a.get(ctx, "/api/v1/nodes/"+node.NodeName, &n); err != nil {
		return false, err.Error(), nil
	}
	ok, seen := conditionTrue(n.Status.Conditions, "Ready")
	return ok, seen, nil
}

func (a api) deploymentReady(namespace, name string) look {
	return func(ctx context.Context) (bool, string, error) {
		var d struct {
			Status struct{ Conditions []condition }
		}
		if err := a.get(ctx, "/apis/apps/v1/namespaces/"+namespace+"/deployments/"+name, &d); err != nil {
			return false, err.Error(), nil
		}
		ok, seen := conditionTrue(d.Status.Conditions, "Available")
		return ok, seen, nil
	}
}

// install applies an addon. The custom resources come first and must be served before anything uses them.
func install(ctx context.Context, layout node.Layout, a addons.Addon) error {
	if a.CRDs != "" {
		crds := layout.Program(a.CRDs)
		if err := kubectl(ctx, layout, "", "apply", "--server-side", "--filename", crds); err != nil {
			return fmt.Errorf("install the CRDs of %s: %w", a.Name, err)
		}
		if err := kubectl(ctx, layout, "", "wait", "--for=condition=Established", "--timeout=60s", "--filename", crds); err != nil {
			return fmt.Errorf("wait for the CRDs of %s: %w", a.Name, err)
		}
	}
	if err := kubectl(ctx, layout, a.Manifest, "apply", "--server-side", "--filename", "-"); err != nil {
		return fmt.Errorf("install %s: %w", a.Name, err)
	}
	return nil
}

func kubectl(ctx context.Context, layout node.Layout, stdin string, args ...string) error {
	args = append([]string{"--kubeconfig", layout.Kubeconfig(), "--cache-dir", layout.KubectlCache()}, args...)
	cmd := exec.CommandContext(ctx, layout.Program("kubectl"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	if err := cmd.Run(); err != nil {
		if said := strings.TrimSpace(failure.String()); said != "" {
			return errors.New(said)
		}
		return err
	}
	return nil
}
