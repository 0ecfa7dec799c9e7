package main

import (
	"fmt"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/stage"
)

// reached is how far the demo came; only commands that fit are shown.
type reached struct {
	// glance: it is at the next release, and the image to walk on with is there.
	glance bool
	// keystone: there is one; keystoneWalked: it is at the next release.
	keystone, keystoneWalked bool
}

func (d *demo) reached() reached {
	r := reached{glance: d.results.installed == stage.ReleaseAfter && d.results.aborted != "", keystone: d.walked != nil}
	r.keystoneWalked = r.keystone && d.walked.installed == stage.KeystoneAfter
	return r
}

// lookAround is what remains, whether or not all went as promised: a cluster to look at.
func (d *demo) lookAround() {
	d.headline("The cluster stays up: look around")
	d.block(fmt.Sprintf("export KUBECONFIG=%s\nexport PATH=%s:$PATH\n", d.stage.Kubeconfig(), directory(d.stage.KubectlPath())) + d.reached().commands())
	d.say("`make demo` begins anew; `%s` ends the cluster and removes all of it.", ending(d.stage.Cluster))
}

// ending is the command that ends a cluster.
func ending(cluster string) string {
	if cluster == "dev" {
		return "make cluster-down"
	}
	return "go run ./test/cluster down --name " + cluster
}

func (r reached) commands() string {
	var all strings.Builder
	all.WriteString(`kubectl -n openstack get glance,jobs,pods
kubectl -n openstack describe glance images        # conditions and events
kubectl -n openstack get glance images -o wide
kubectl explain glance.spec.image
`)
	if r.glance {
		fmt.Fprintf(&all, `# Walk on by hand: the images on the node are tagged %s, %s and %s.
kubectl -n openstack patch glance images --type=merge -p '%s'
# Call it off:
kubectl -n openstack patch glance images --type=merge -p '%s'
`, stage.TagBefore, stage.TagAfter, tagBeyond, stage.Patch(stage.ReleaseBeyond, tagBeyond), stage.Patch(stage.ReleaseAfter, stage.TagAfter))
	}
	if r.keystone {
		all.WriteString(`kubectl -n identity get keystone,jobs,pods
kubectl -n identity describe keystone identity     # conditions and events
kubectl -n identity get keystone identity -o wide
kubectl explain keystone.spec.image
`)
	}
	if r.keystoneWalked {
		fmt.Fprintf(&all, "# There is no way back, and the webhook says so:\nkubectl -n identity patch keystone identity --type=merge -p '%s'\n", stage.PatchTag(stage.KeystoneBefore))
	}
	all.WriteString(`kubectl -n openstack-upgrade logs -l app.kubernetes.io/name=openstack-upgrade-controller --prefix --tail=50
kubectl -n openstack-upgrade logs -l app.kubernetes.io/name=openstack-upgrade-webhook --prefix --tail=50
`)
	return all.String()
}
