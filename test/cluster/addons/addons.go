// Package addons is what a cluster holds from the start beside its node: the images of our own binaries, CoreDNS,
// and cert-manager's own controllers and CA injector, without its webhook and CLI.
package addons

import (
	_ "embed"
	"io/fs"
	"path/filepath"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

// Addon is a Deployment that up installs and waits for.
type Addon struct {
	Name      string
	Namespace string
	Image     string
	Manifest  string
	// Needs names its binaries beyond those of every node, CRDs the one of them that holds its custom resources.
	Needs []string
	CRDs  string
}

//go:embed coredns.yaml
var corednsManifest string

//go:embed cert-manager.yaml
var certManagerManifest string

// CoreDNS is in every cluster; CertManager may be left out.
var (
	CoreDNS = Addon{
		Name: "coredns", Namespace: "kube-system", Image: "test.local/coredns:1", Manifest: corednsManifest,
	}
	CertManager = Addon{
		Name: "cert-manager", Namespace: "cert-manager", Image: "test.local/cert-manager:1", Manifest: certManagerManifest,
		Needs: []string{"cert-manager", "cert-manager-crds.yaml"},
		CRDs:  "cert-manager-crds.yaml",
	}
)

// Pause is the image under every pod: no addon, but made like one.
var Pause = Addon{Name: "pause", Image: node.SandboxImage}

// Contents is the addon's image: its program, out of the directory of binaries, and a place for temporary files.
func (a Addon) Contents(bin string) archive.Image {
	return archive.Image{
		Ref:    a.Image,
		Config: archive.Config{Entrypoint: []string{"/" + a.Name}, User: "65532:65532", WorkingDir: "/"},
		Layers: []archive.Layer{{Files: []archive.File{
			{Path: a.Name, Source: filepath.Join(bin, a.Name), Mode: 0o755},
			{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		}}},
	}
}
