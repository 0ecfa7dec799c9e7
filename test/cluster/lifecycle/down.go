package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

const patience = 20 * time.Second

// Down ends the cluster and removes all that is left of it. Where nothing is left it has nothing to do.
func Down(ctx context.Context, log Log, name string) error {
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
	if err := remove(layout, p); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: a cluster is ended by who started it: run this with sudo -E", err)
		}
		return err
	}
	p.say("cluster %s is down", name)
	return nil
}

// remove ends the processes, then what outlives them: cgroups, and mounts and files if something went wrong before.
func remove(layout node.Layout, p progress) error {
	if _, err := os.Stat(layout.State); errors.Is(err, fs.ErrNotExist) {
		return layout.RemoveCgroups()
	}
	processes, err := layout.Carriers()
	if err != nil {
		return err
	}
	for _, process := range processes {
		p.say("end process %d and all it holds", process.PID)
		if err := process.End(patience); err != nil {
			return err
		}
	}
	p.say("remove what is left of cluster %s", layout.Name)
	if err := unmountBelow(layout.State); err != nil {
		return err
	}
	if err := layout.RemoveCgroups(); err != nil {
		return err
	}
	if err := os.RemoveAll(layout.State); err != nil {
		return fmt.Errorf("remove the cluster's state: %w", err)
	}
	return nil
}

// unmountBelow detaches every mount at or below dir, the latest first.
func unmountBelow(dir string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read the mounts: %w", err)
	}
	points := mountsBelow(string(table), dir)
	slices.Reverse(points)
	for _, point := range points {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}

// mountsBelow finds the mount points at or below dir, in the order in which they were mounted.
func mountsBelow(mountinfo, dir string) []string {
	const pointField = 4
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`)
	var points []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) <= pointField {
			continue
		}
		point := unescape.Replace(fields[pointField])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	return points
}
