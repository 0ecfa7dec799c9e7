package lifecycle

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

// Status prints what the cluster is made of and how to reach it.
func Status(ctx context.Context, out io.Writer, name string, now time.Time) error {
	layout, state, err := living(name)
	if err != nil {
		return err
	}
	components, err := layout.ReadComponents()
	if err != nil {
		return err
	}
	pids, err := node.HostPIDs(state.Init)
	if err != nil {
		return err
	}

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPID\tSTATE\tSINCE\tRESTARTS")
	fmt.Fprintf(table, "supervisor\t%d\trunning\t%s\t0\n", state.Supervisor.PID, since(now, state.Since))
	for _, c := range components {
		pid := "-"
		if host, known := pids[c.PID]; known && c.State == node.Running {
			pid = strconv.Itoa(host)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\n", c.Name, pid, c.State, since(now, c.Since), c.Restarts)
	}
	if err := table.Flush(); err != nil {
		return err
	}

	ready := "no"
	if client, err := dialAPI(layout); err != nil {
		ready = "unknown: " + err.Error()
	} else if ok, seen, _ := client.nodeReady()(ctx); ok {
		ready = "yes"
	} else if seen != "" {
		ready = "no: " + seen
	}
	for _, row := range [][2]string{
		{"node ready", ready},
		{"API server", fmt.Sprintf("https://127.0.0.1:%d", state.Port)},
		{"kubeconfig", layout.Kubeconfig()},
		{"kubectl", layout.Program("kubectl")},
		{"audit log", layout.AuditLog()},
		{"logs", layout.Log("*")},
	} {
		fmt.Fprintf(table, "%s:\t%s\n", row[0], row[1])
	}
	return table.Flush()
}

func since(now, then time.Time) string { return now.Sub(then).Round(time.Second).String() }
