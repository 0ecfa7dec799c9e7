package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Kubectl runs the command as a user would, in the directory of the source, and returns what it printed. The error of
// a command that fails is what it said.
func (s *Stage) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.KubectlPath(), append([]string{"--cache-dir", s.layout.KubectlCache()}, args...)...)
	cmd.Dir = s.Root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig())
	cmd.Stdin = strings.NewReader(stdin)
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		said := strings.TrimSpace(failure.String())
		if said == "" {
			said = strings.TrimSpace(out.String())
		}
		if said == "" {
			return out.String(), fmt.Errorf("kubectl %s: %w", args[0], err)
		}
		return out.String(), errors.New(said)
	}
	return out.String(), nil
}

// do is Kubectl for a step of the stage, whose output nobody needs.
func (s *Stage) do(ctx context.Context, stdin string, args ...string) error {
	if _, err := s.Kubectl(ctx, stdin, args...); err != nil {
		return fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// CommandLine is how a command is shown: what the shell needs quoted is quoted.
func CommandLine(args ...string) string {
	words := []string{"kubectl"}
	for _, arg := range args {
		if strings.ContainsAny(arg, " {}\"'$&|;<>*") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
