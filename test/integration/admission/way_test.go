package admission

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// way is one in which people bring a wish to the API server.
type way struct {
	name string
	// line is what is typed; FILE holds the manifest, $MERGE and $JSON are patches that lead to it.
	line string
	// changes is set when it needs a stored object, creates when it can do without.
	changes, creates bool
	// dry is set when it writes nothing.
	dry bool
	// alone is set when the CRD alone is asked in this way too: it answers all of them alike, and is asked in every way
	// what it refuses when the webhook is beside it.
	alone bool
}

var ways = []way{
	{name: "apply", line: "kubectl apply -f FILE", changes: true, creates: true},
	{name: "server-side apply", line: "kubectl apply --server-side --force-conflicts -f FILE", changes: true, creates: true},
	{name: "dry run", line: "kubectl apply --dry-run=server -f FILE", changes: true, creates: true, dry: true, alone: true},
	{name: "create", line: "kubectl create -f FILE", creates: true, alone: true},
	{name: "merge patch", line: `kubectl patch glance $NAME --type=merge -p "$MERGE"`, changes: true, alone: true},
	{name: "JSON patch", line: `kubectl patch glance $NAME --type=json -p "$JSON"`, changes: true},
	{name: "replace", line: "kubectl replace -f FILE", changes: true},
	{name: "edit", line: `KUBE_EDITOR=./edit kubectl edit glance $NAME`, changes: true},
}

// editor brings in the wish, once; when it is shown the file again it keeps what is said there, and gives up.
const editor = `#!/bin/sh
if [ -e edited ]; then grep '^#' "$1" > refused; exit 0; fi
kubectl patch -f "$1" --local --type=merge -p "$(cat MERGE)" -o yaml > edited && cp edited "$1"
`

// dryly is the way without its effect.
func (w way) dryly() way {
	if !w.dry {
		w.line += " --dry-run=server"
	}
	return w
}

// letter tells apart the objects of the ways where a name has no room for more.
func (w way) letter() string { return strings.ToLower(w.name[:1]) }

// types brings a wish to the API server and returns what a person sees.
func (w way) types(t testing.TB, s shell, stored, wish *v1alpha1.Glance) (seen string, ok bool) {
	t.Helper()
	s.write(t, "FILE", string(manifest(t, wish)))
	line := w.line
	if stored != nil {
		merge, err := jsonpatch.CreateMergePatch(manifest(t, stored), manifest(t, wish))
		require.NoError(t, err)
		whole := []map[string]any{
			{"op": "add", "path": "/spec", "value": wish.Spec},
			{"op": "add", "path": "/metadata/labels", "value": orEmpty(wish.Labels)},
			{"op": "add", "path": "/metadata/finalizers", "value": append([]string{}, wish.Finalizers...)},
		}
		text, err := json.Marshal(whole)
		require.NoError(t, err)
		s.write(t, "MERGE", string(merge))
		s.write(t, "JSON", string(text))
		s.write(t, "edit", editor)
		line = `NAME=` + wish.Name + `; MERGE="$(cat MERGE)"; JSON="$(cat JSON)"; ` + line
	}
	seen, ok = s.types(t, line)
	if w.name == "edit" && !ok {
		told, _ := s.types(t, `sed -n 's/^# //; s/^#$//; /was not valid/,$p' refused`)
		return told, false
	}
	return seen, ok
}

// manifest is what a person keeps in a file.
func manifest(t testing.TB, g *v1alpha1.Glance) []byte {
	t.Helper()
	metadata := map[string]any{"name": g.Name, "namespace": g.Namespace}
	if len(g.Labels) > 0 {
		metadata["labels"] = g.Labels
	}
	if len(g.Finalizers) > 0 {
		metadata["finalizers"] = g.Finalizers
	}
	text, err := json.Marshal(map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Glance", "metadata": metadata, "spec": g.Spec})
	require.NoError(t, err)
	return text
}

func orEmpty(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}
