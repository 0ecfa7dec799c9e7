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

// conditions reads those of one object. An API server that does not answer is one more thing to wait for, so why it
// did not is something seen, not a failure.
func (a api) conditions(ctx context.Context, path string) (found []condition, seen string) {
	var object struct {
		Status struct{ Conditions []condition }
	}
	if err := a.get(ctx, path, &object); err != nil {
		return nil, err.Error()
	}
	return object.Status.Conditions, ""
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

// holds looks whether a condition of an object is true.
func (a api) holds(path, kind string) look {
	return func(ctx context.Context) (bool, string, error) {
		conditions, failure := a.conditions(ctx, path)
		if failure != "" {
			return false, failure, nil
		}
		ok, seen := conditionTrue(conditions, kind)
		return ok, seen, nil
	}
}

func (a api) nodeReady() look { return a.holds("/api/v1/nodes/"+node.NodeName, "Ready") }

func (a api) available(namespace, deployment string) look {
	return a.holds("/apis/apps/v1/namespaces/"+namespace+"/deployments/"+deployment, "Available")
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
