package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

// enter is the command line that runs args in the node's namespaces.
func enter(state node.State, args ...string) []string {
	return append([]string{
		"nsenter", "--target", strconv.Itoa(state.Init.PID), "--mount", "--net", "--pid", "--uts", "--ipc", "--",
	}, args...)
}

func inside(ctx context.Context, layout node.Layout, state node.State, args ...string) *exec.Cmd {
	line := enter(state, args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = layout.Environment()
	return cmd
}

// Exec becomes the command, inside the node, on a terminal of that kind if there is one. It returns only if it could not.
func Exec(name, terminal string, args []string) error {
	layout, state, err := living(name)
	if err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return fmt.Errorf("enter the node: %w", err)
	}
	environment := layout.Environment()
	if terminal != "" {
		environment = append(environment, "TERM="+terminal)
	}
	return syscall.Exec(nsenter, enter(state, args...), environment)
}

// Load puts the images of a docker-archive or OCI tar into the node and returns their names.
func Load(ctx context.Context, name, tar string) ([]string, error) {
	layout, state, err := living(name)
	if err != nil {
		return nil, err
	}
	names, err := archive.Names(tar)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(tar)
	if err != nil {
		return nil, fmt.Errorf("load image: %w", err)
	}
	defer file.Close()
	return names, importImage(ctx, layout, state, func(w io.Writer) error {
		_, err := io.Copy(w, file)
		return err
	})
}

// importImage hands the tar over as standard input: the node does not see every path of the host.
func importImage(ctx context.Context, layout node.Layout, state node.State, write func(io.Writer) error) error {
	cmd := inside(ctx, layout, state, layout.Program("ctr"), "images", "import", "-")
	input, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	written := errors.Join(write(input), input.Close())
	// When containerd refuses, the broken pipe on our side is but the consequence.
	if err := cmd.Wait(); err != nil {
		said := strings.Split(strings.TrimSpace(output.String()), "\n")
		return fmt.Errorf("load image: containerd: %w: %s", err, said[len(said)-1])
	}
	if written != nil {
		return fmt.Errorf("load image: %w", written)
	}
	return nil
}

// succeeds looks whether a command inside the node ends well.
func succeeds(layout node.Layout, state node.State, args ...string) look {
	return func(ctx context.Context) (bool, string, error) {
		out, err := inside(ctx, layout, state, args...).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return err == nil, lines[len(lines)-1], nil
	}
}
