package lifecycle

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/addons"
	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

// Up brings the cluster up and returns when its node is Ready and every addon serves. A cluster that lives already is
// left as it is; one that was left half up is completed; the remains of one that died are removed first.
func Up(ctx context.Context, log Log, name string, with ...addons.Addon) error {
	p := progress{log: log, started: time.Now()}
	layout, err := node.NewLayout(name)
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, layout, log)
	if err != nil {
		return err
	}
	defer unlock()

	state, found, err := layout.ReadState()
	if err != nil {
		return err
	}
	if found && state.Running() && state.Ready {
		p.say("cluster %s is up already, since %s", name, state.Since.Format(time.TimeOnly))
		return nil
	}
	if err := require(ctx, p); err != nil {
		return err
	}
	needs := slices.Clone(binaries.Node)
	for _, a := range with {
		needs = append(needs, a.Needs...)
	}
	layout.Bin, err = binaries.Ensure(ctx, binaries.Log(p.say), needs...)
	if err != nil {
		return err
	}
	if found && state.Running() {
		layout.Bin = state.Bin
		p.say("cluster %s was left half up: go on", name)
	} else if state, err = start(ctx, layout, p); err != nil {
		return err
	}
	if err := settle(ctx, layout, state, p, append([]addons.Addon{addons.CoreDNS}, with...)); err != nil {
		return err
	}
	state.Ready = true
	if err := layout.WriteState(state); err != nil {
		return err
	}
	p.say("cluster %s is up", name)
	return nil
}

// start leaves a supervisor behind, on a clean slate.
func start(ctx context.Context, layout node.Layout, p progress) (node.State, error) {
	if err := remove(layout, p); err != nil {
		return node.State{}, err
	}
	p.say("write certificates and configuration")
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return node.State{}, fmt.Errorf("listen on the loopback address: %w", err)
	}
	defer listener.Close()
	if err := layout.Write(time.Now(), listener.Addr().(*net.TCPAddr).Port); err != nil {
		return node.State{}, err
	}
	if err := placeSelf(ctx, layout.Self()); err != nil {
		return node.State{}, err
	}
	p.say("start the node")
	return layout.Start(ctx, listener)
}

// settle waits for the control plane, loads images, installs the addons and waits until all of it serves.
func settle(ctx context.Context, layout node.Layout, state node.State, p progress, all []addons.Addon) error {
	watch := watcher{layout: layout, state: state}
	if err := p.await(ctx, "containerd", time.Minute, watch.and(succeeds(layout, state, layout.Program("ctr"), "version"))); err != nil {
		return err
	}
	for _, a := range append([]addons.Addon{addons.Pause}, all...) {
		p.say("load image %s", a.Image)
		if err := importImage(ctx, layout, state, func(w io.Writer) error { return archive.Write(w, a.Contents(layout.Bin)) }); err != nil {
			return err
		}
	}
	if err := p.await(ctx, "the API server", 2*time.Minute, watch.running("kubelet")); err != nil {
		return err
	}
	api, err := dialAPI(layout)
	if err != nil {
		return err
	}
	for _, a := range all {
		p.say("install %s", a.Name)
		if err := install(ctx, layout, a); err != nil {
			return err
		}
	}
	if err := p.await(ctx, "the node to be Ready", 2*time.Minute, watch.and(api.nodeReady())); err != nil {
		return err
	}
	for _, a := range all {
		if err := p.await(ctx, a.Name, 2*time.Minute, watch.and(api.available(a.Namespace, a.Name))); err != nil {
			return err
		}
	}
	// From inside the node: whether kube-proxy turns Service addresses and CoreDNS answers.
	return p.await(ctx, "Service addresses and DNS inside the node", time.Minute, watch.and(succeeds(layout, state, layout.Self(), node.CommandProbe)))
}
