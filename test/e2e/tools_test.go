//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/contract"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

const (
	toolsNamespace = "tools"
	toolsKeys      = "fernet-keys"
)

// toolImages are the images that the trials run in, by service and release.
var toolImages = map[string][2]string{
	"glance":   {stage.Glances.Image(stage.TagBefore), stage.Glances.Image(stage.TagAfter)},
	"keystone": {stage.Keystones.Image(stage.TagBefore), stage.Keystones.Image(stage.TagAfter)},
}

// tried is one trial with what came of it.
type tried struct {
	row  string
	want int
	seen string
	took time.Duration
}

// TestTheToolsKeepTheContract tries every fact that this product relies on, on the real tools and a real MariaDB.
func TestTheToolsKeepTheContract(t *testing.T) {
	require.NoError(t, on.LoadKeystone(t.Context()))
	dropped(t, toolsNamespace)
	require.NoError(t, on.Namespace(t.Context(), toolsNamespace))
	require.NoError(t, on.PutKeys(t.Context(), toolsNamespace, toolsKeys))
	boxes := map[string][2]*stage.Toolbox{}
	for service, images := range toolImages {
		keys := map[string]string{"keystone": toolsKeys}[service]
		var two [2]*stage.Toolbox
		for i, image := range images {
			var err error
			two[i], err = on.OpenToolbox(t.Context(), toolsNamespace, fmt.Sprintf("%s-%d", service, i), service, image, keys)
			require.NoError(t, err)
		}
		boxes[service] = two
	}

	told := make([][]tried, len(contract.Stories))
	stories := make([]story, len(contract.Stories))
	for i, s := range contract.Stories {
		stories[i] = story{s.Name, func(t *testing.T) { told[i] = try(t, s, boxes[s.Service]) }}
	}
	sideBySide(t, stories...)

	fmt.Println("\nTHE CONTRACT OF THE TOOLS")
	fmt.Printf("  %-9s %-16s %-38s %-80s %8s %5s %6s\n", "service", "program", "command", "situation", "expected", "seen", "took")
	for _, one := range told {
		for _, r := range one {
			cells := strings.Split(strings.Trim(strings.ReplaceAll(r.row, "`", ""), "| "), " | ")
			fmt.Printf("  %-9s %-16s %-38s %-80s %8d %5s %5.1fs\n", cells[0], cells[1], cells[2], cells[3], r.want, r.seen, r.took.Seconds())
		}
	}
	fmt.Println()
}

// noise is what Python may print at its end: it tells nothing of a failure.
var noise = []string{"getcurrent", "Exception ignored"}

func try(t *testing.T, s contract.Story, boxes [2]*stage.Toolbox) []tried {
	database := "tools_" + s.Name
	url, err := on.Database(t.Context(), database)
	require.NoError(t, err)
	var all []tried
	for _, trial := range s.Trials {
		if trial.Before != "" {
			_, err := on.SQL(t.Context(), database, trial.Before)
			require.NoError(t, err, "prepare: %s", s.Row(trial))
		}
		env := append([]string{"OS_DATABASE__CONNECTION=" + url}, contract.Env[s.Service]...)
		began := time.Now()
		exit, said, err := boxes[trial.On].Run(t.Context(), append(env, trial.Env...), s.Words(trial)...)
		one := tried{row: s.Row(trial), want: trial.Exit, seen: fmt.Sprint(exit), took: time.Since(began)}
		if err != nil {
			one.seen = "none"
		}
		all = append(all, one)
		if !assert.NoError(t, err, one.row) || !assert.Equal(t, trial.Exit, exit, "%s\n%s", one.row, ending(said)) {
			break // what follows builds on it
		}
	}
	return all
}

// ending is the end of what a command wrote.
func ending(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		useful := true
		for _, n := range noise {
			useful = useful && !strings.Contains(line, n)
		}
		if useful {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-12):], "")
}
