package addons

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

func TestAManifestRunsItsAddonsImageUnderItsName(t *testing.T) {
	for _, a := range []Addon{CoreDNS, CertManager} {
		for _, want := range []string{
			"kind: Deployment\nmetadata:\n  name: " + a.Name + "\n  namespace: " + a.Namespace + "\n",
			"image: " + a.Image + "\n        imagePullPolicy: Never\n",
		} {
			if !strings.Contains(a.Manifest, want) {
				t.Errorf("the manifest of %s has no\n%s", a.Name, want)
			}
		}
	}
}

func TestTheClustersDNSIsWhereTheKubeletSendsPods(t *testing.T) {
	if !strings.Contains(CoreDNS.Manifest, "clusterIP: "+node.DNSService+"\n") {
		t.Errorf("no Service at %s", node.DNSService)
	}
}

func TestAnImageHoldsTheProgramItStarts(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "pause"), []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	image := Pause.Contents(bin)
	if image.Ref != node.SandboxImage || image.Config.Entrypoint[0] != "/pause" {
		t.Errorf("%+v", image)
	}
	var tar bytes.Buffer
	if err := archive.Write(&tar, image); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(tar.Bytes(), []byte("program")) {
		t.Error("the program is not in it")
	}
	if err := archive.Write(&tar, CoreDNS.Contents(bin)); err == nil {
		t.Error("an image without its program was written")
	}
}
