package scale

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// Etcd takes at most this many puts in one transaction.
const mostPuts = 120

// entry is a key of etcd and its value.
type entry struct {
	key   string
	value []byte
}

// specimen is a Glance and all that etcd holds of it.
type specimen struct {
	glance  *v1alpha1.Glance
	entries []entry
	uids    []string
	// address and claim are stored anew, because an IP of another length cannot take the place of the old one.
	address *corev1.Service
	claim   *networkingv1.IPAddress
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// specimenOf reads a Glance at rest. Names and UIDs that take each other's place have one length, so that even what is
// stored in binary form stays readable.
func specimenOf(t testing.TB, env *harness.Env, key client.ObjectKey) specimen {
	t.Helper()
	s := specimen{glance: &v1alpha1.Glance{}, address: &corev1.Service{}, claim: &networkingv1.IPAddress{}}
	require.NoError(t, env.Client.Get(t.Context(), key, s.glance))
	require.NoError(t, env.Client.Get(t.Context(), key, s.address))
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Name: s.address.Spec.ClusterIP}, s.claim))
	seen := map[string]bool{}
	for _, e := range stored(t, env, "/registry/") {
		_, name, inside := strings.Cut(e.key, "/"+key.Namespace+"/")
		if !inside || !strings.HasPrefix(name, key.Name) || strings.HasPrefix(e.key, "/registry/events/") || strings.HasPrefix(e.key, "/registry/services/specs/") {
			continue
		}
		e.value = stored(t, env, e.key)[0].value
		s.entries = append(s.entries, e)
	}
	for _, e := range s.entries {
		for _, uid := range uidPattern.FindAllString(string(e.value), -1) {
			if !seen[uid] {
				seen[uid] = true
				s.uids = append(s.uids, uid)
			}
		}
	}
	s.uids = append(s.uids, string(s.address.UID))
	require.Greater(t, len(s.entries), 5, "what etcd holds of %s", key)
	return s
}

// copyTo stores the specimen under other names, with an IP for each.
func (s specimen) copyTo(t testing.TB, env *harness.Env, keys []client.ObjectKey, ip func() string) {
	t.Helper()
	from := client.ObjectKeyFromObject(s.glance)
	words := append([]string{from.Name, from.Namespace}, s.uids...)
	words = append(words, s.hashes(s.glance)...)
	forms := make([]form, len(s.entries))
	for i, e := range s.entries {
		forms[i] = formOf(string(e.value), words)
	}
	var puts []entry
	var all errgroup.Group
	all.SetLimit(4)
	flush := func() {
		batch := puts
		puts = nil
		all.Go(func() error { return ask(t.Context(), env, "txn", putting(batch), &struct{}{}) })
	}
	for _, to := range keys {
		require.Len(t, to.Name, len(from.Name))
		require.Len(t, to.Namespace, len(from.Namespace))
		changed := []string{to.Name, to.Namespace}
		for range s.uids {
			changed = append(changed, uuid.NewString())
		}
		copied := s.glance.DeepCopy()
		copied.Namespace, copied.Name = to.Namespace, to.Name
		changed = append(changed, s.hashes(copied)...)
		if len(puts)+len(s.entries)+2 > mostPuts {
			flush()
		}
		renamed := strings.NewReplacer(from.Name, to.Name, from.Namespace, to.Namespace)
		for i, e := range s.entries {
			puts = append(puts, entry{renamed.Replace(e.key), forms[i].with(changed)})
		}
		puts = append(puts, s.addressed(t, words, changed, to, ip())...)
	}
	flush()
	require.NoError(t, all.Wait())
}

// form is a text with gaps: what stands before each gap, and which word goes into it. The last has no word.
type form []slot

type slot struct {
	before string
	word   int
}

func formOf(text string, words []string) (f form) {
	for from, i := 0, 0; ; i++ {
		if i == len(text) {
			return append(f, slot{text[from:], -1})
		}
		word := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(text[i:], word) })
		if word >= 0 {
			f = append(f, slot{text[from:i], word})
			from = i + len(words[word])
			i = from - 1
		}
	}
}

// with fills the gaps.
func (f form) with(words []string) (text []byte) {
	for _, part := range f {
		text = append(text, part.before...)
		if part.word >= 0 {
			text = append(text, words[part.word]...)
		}
	}
	return text
}

// addressed are the Service of a copy and the claim on its IP.
func (s specimen) addressed(t testing.TB, words, changed []string, to client.ObjectKey, ip string) []entry {
	t.Helper()
	write := func(object client.Object, kind metav1.TypeMeta, key string) entry {
		object.SetResourceVersion("")
		text, err := json.Marshal(object)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(formOf(string(text), words).with(changed), &fields))
		fields["apiVersion"], fields["kind"] = kind.APIVersion, kind.Kind
		text, err = json.Marshal(fields)
		require.NoError(t, err)
		return entry{key, text}
	}
	address, claim := s.address.DeepCopy(), s.claim.DeepCopy()
	address.Spec.ClusterIP, address.Spec.ClusterIPs = ip, []string{ip}
	claim.Name = ip
	return []entry{
		write(address, metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, "/registry/services/specs/"+to.Namespace+"/"+to.Name),
		write(claim, metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "IPAddress"}, "/registry/ipaddresses/"+ip),
	}
}

// hashes are the fingerprints of everything that is rendered for a Glance, which hold its name.
func (s specimen) hashes(g *v1alpha1.Glance) []string {
	glance := service.Glance()
	w, state, wish := glance.Workload(g), g.State(), glance.Wish(g)
	found := []string{render.Deployment(w, state.InstalledImage, state).Spec.Template.Annotations[render.AnnotationTemplate]}
	for _, task := range upgrade.Tasks {
		job := render.Job(w, upgrade.WorkOf(state, wish, task))
		found = append(found, job.Annotations[render.AnnotationTemplate], job.Spec.Template.Annotations[render.AnnotationTemplate])
	}
	return found
}

// stored lists what etcd holds: the keys below one that ends in a slash, or the value of another.
func stored(t testing.TB, env *harness.Env, key string) []entry {
	t.Helper()
	question := map[string]any{"key": []byte(key)}
	if strings.HasSuffix(key, "/") {
		question["range_end"], question["keys_only"] = []byte(strings.TrimSuffix(key, "/")+"0"), true
	}
	var answer struct {
		Kvs []struct{ Key, Value string } `json:"kvs"`
	}
	require.NoError(t, ask(t.Context(), env, "range", question, &answer))
	var found []entry
	for _, kv := range answer.Kvs {
		key, err := base64.StdEncoding.DecodeString(kv.Key)
		require.NoError(t, err)
		value, err := base64.StdEncoding.DecodeString(kv.Value)
		require.NoError(t, err)
		found = append(found, entry{string(key), value})
	}
	return found
}

func putting(entries []entry) any {
	var success []any
	for _, e := range entries {
		success = append(success, map[string]any{"requestPut": map[string]any{"key": []byte(e.key), "value": e.value}})
	}
	return map[string]any{"success": success}
}

// ask speaks to etcd by the JSON form of its API.
func ask(ctx context.Context, env *harness.Env, deed string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, env.Etcd()+"/v3/kv/"+deed, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s: %s: %s", deed, response.Status, body)
	}
	return json.Unmarshal(body, answer)
}

// addresses gives every Service of a copy an IP of its own, out of a part of the range that is far from crowded.
func addresses(taken string) func() string {
	n := 0
	return func() string {
		for {
			n++
			if ip := fmt.Sprintf("10.17.%d.%d", n/250, 1+n%250); ip != taken {
				return ip
			}
		}
	}
}
