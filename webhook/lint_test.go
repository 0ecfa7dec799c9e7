package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/webhook/lint"
)

const manifest = `apiVersion: openstack.c5c3.io/v1alpha1
kind: Glance
metadata: {name: images}
spec:
  openStackRelease: "2026.1"
  image: {repository: registry.example.org/glance, tag: "2026.1"}
  database: {secretRef: {name: images-database}}
`

func TestTheExitCodeOfLintTellsCleanRefusedAndUnreadable(t *testing.T) {
	clean := filepath.Join(t.TempDir(), "clean.yaml")
	require.NoError(t, os.WriteFile(clean, []byte(manifest), 0o600))
	for what, c := range map[string]struct {
		args  []string
		piped string
		code  int
		says  string
	}{
		"clean":                  {[]string{clean}, "", 0, "1 judged, 0 refused, 0 with a warning; 0 of other kinds; 0 unreadable\n"},
		"piped in":               {[]string{"-"}, manifest, 0, "1 judged, 0 refused"},
		"a warning":              {[]string{"-"}, strings.Replace(manifest, `tag: "2026.1"`, "tag: latest", 1), 0, "1 with a warning"},
		"refused":                {[]string{"-"}, strings.Replace(manifest, `tag: "2026.1"`, `tag: "2026.2"`, 1), exitFailed, "-:1: Glance default/images: refused\n"},
		"refused as an edit":     {[]string{"--installed", "2025.1", clean}, "", exitFailed, "UpgradePathInvalid: 2025.1 → 2026.1 skips 2025.2"},
		"refused for its image":  {[]string{"--installed=2025.2", "--installed-image=registry.example.org/glance:latest", "-"}, strings.Replace(manifest, `tag: "2026.1"`, "tag: latest", 1), exitFailed, "nothing would migrate"},
		"another namespace":      {[]string{"-n", "here", "-"}, strings.Replace(manifest, `tag: "2026.1"`, `tag: "2026.2"`, 1), exitFailed, "kubectl apply -n here"},
		"unreadable":             {[]string{clean, "-"}, "{{", exitUsage, "-:1: unreadable: yaml: "},
		"refused and unreadable": {[]string{clean + ".gone", "-"}, strings.Replace(manifest, `tag: "2026.1"`, `tag: "2026.2"`, 1), exitUsage, "no such file or directory"},
		"help":                   {[]string{"--help"}, "", 0, "webhook lint [flags] FILE|DIRECTORY|- ..."},
	} {
		t.Run(what, func(t *testing.T) {
			var out, complaints bytes.Buffer
			assert.Equal(t, c.code, runLint(c.args, strings.NewReader(c.piped), &out, &complaints))
			assert.Contains(t, out.String(), c.says)
			assert.Empty(t, complaints.String())
		})
	}
}

func TestLintSaysInOneLineWhichArgumentIsWrong(t *testing.T) {
	for argument, says := range map[string]string{
		"":                        "name a file, a directory, or - for what is piped in; webhook lint --help tells more",
		"--nonsense":              "unknown flag: --nonsense",
		"--output=xml x":          `--output "xml": is neither text nor json`,
		"--namespace= x":          `--namespace "": name one`,
		"--installed=2026.3 x":    `--installed: "2026.3" is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1`,
		"--installed-image=a:b x": "--installed-image: say with --installed which release it is",
		"--installed=2026.1 --installed-image=a: x":           `--installed-image: image "a:": "" is not a tag`,
		"--installed=2026.1 --installed-image=a/b x":          `--installed-image "a/b": name its tag or digest`,
		"--installed=2026.1 --installed-image=a/b:2026.2-x x": `--installed-image "a/b:2026.2-x": its tag names 2026.2, and --installed is 2026.1`,
		"- -": "- is given twice: what is piped in can be read once",
	} {
		t.Run(argument, func(t *testing.T) {
			var out, complaints bytes.Buffer
			assert.Equal(t, exitUsage, runLint(strings.Fields(argument), strings.NewReader(""), &out, &complaints))
			assert.Equal(t, "webhook lint: "+says+"\n", complaints.String())
			assert.Empty(t, out.String())
		})
	}
}

func TestLintReportsToProgramsToo(t *testing.T) {
	var out bytes.Buffer
	assert.Zero(t, runLint([]string{"-o", "json", "-"}, strings.NewReader(manifest+"---\nkind: Pod\n"), &out, &out))
	var report lint.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	require.Len(t, report.Objects, 1)
	assert.Equal(t, lint.Admitted, report.Objects[0].Verdict)
	assert.Equal(t, "images", report.Objects[0].Name)
	assert.Equal(t, 1, report.Ignored)
}

func TestLintEndsWithTheFirstSignal(t *testing.T) {
	if os.Getenv("LINT_WHAT_IS_PIPED_IN") != "" {
		os.Args = []string{"webhook", "lint", "-"}
		main()
	}
	program := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	program.Env = append(os.Environ(), "LINT_WHAT_IS_PIPED_IN=yes")
	in, err := program.StdinPipe() // never closed before the end, so lint waits
	require.NoError(t, err)
	require.NoError(t, program.Start())
	defer func() { _ = in.Close() }()
	_, err = in.Write([]byte(manifest + strings.Repeat("#\n", 64<<10))) // more than a pipe holds: lint reads by now
	require.NoError(t, err)
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "signal: terminated")
	case <-time.After(10 * time.Second):
		_ = program.Process.Kill()
		t.Fatal("it goes on reading")
	}
}
