package admission_test

import (
	"encoding/json"
	"regexp"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/rows"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

const keystones = "registry.example.org/keystone"

func keystone(tag, digest string, state upgrade.State) *v1alpha1.Keystone {
	k := &v1alpha1.Keystone{
		TypeMeta:   metav1.TypeMeta{APIVersion: "openstack.c5c3.io/v1alpha1", Kind: "Keystone"},
		ObjectMeta: metav1.ObjectMeta{Name: "identity", Namespace: "openstack", Generation: 1},
		Spec:       v1alpha1.KeystoneSpec{Image: v1alpha1.ImageSpec{Repository: keystones, Tag: tag, Digest: digest}},
	}
	k.SetState(state)
	return k
}

func keystoneRequest(t *testing.T, stored, wish *v1alpha1.Keystone) *admissionv1.AdmissionRequest {
	t.Helper()
	operation, old := admissionv1.Create, any(nil)
	if stored != nil {
		operation, old = admissionv1.Update, stored
		wish = wish.DeepCopy()
		wish.Status = stored.Status
	}
	request := requestFor(t, operation, "openstack", "identity", wish, old)
	request.Kind.Kind, request.Resource.Resource = "Keystone", "keystones"
	return request
}

func TestAKeystoneIsJudgedByItsTag(t *testing.T) {
	h := serve(t, admission.Policy{}, admission.Kinds...)
	at261 := upgrade.State{Installed: "2026.1", InstalledImage: keystones + ":2026.1"}
	walk := upgrade.State{Installed: "2026.1", InstalledImage: keystones + ":2026.1", Target: "2026.2", TargetImage: keystones + ":2026.2", Phase: upgrade.Migrating, Attempt: 2, Ahead: "2026.2"}
	ahead := upgrade.State{Installed: "2026.1", InstalledImage: keystones + ":2026.1", AbortedImage: keystones + ":2026.2", Attempt: 2, Ahead: "2026.2"}
	contracting := walk
	contracting.Phase = upgrade.Contracting
	opaque := upgrade.State{Installed: upgrade.Unnamed, InstalledImage: keystones + "@" + rows.DigestA}
	for _, c := range []struct {
		what    string
		stored  *v1alpha1.Keystone
		wish    *v1alpha1.Keystone
		refused []string
		warned  []string
		command string
	}{
		{"a new one", nil, keystone("2026.1-bookworm", "", upgrade.State{}), nil, nil, ""},
		{"a new one by digest", nil, keystone("", rows.DigestA, upgrade.State{}), nil, []string{"ImageReleaseUnknown"}, ""},
		{"a patch", keystone("2026.1", "", at261), keystone("2026.1-p1", "", at261), nil, nil, ""},
		{"one step", keystone("2026.1", "", at261), keystone("2026.2", "", at261), nil, nil, ""},
		{"a skip", keystone("2026.1", "", at261), keystone("2027.1", "", at261), []string{"UpgradePathInvalid"}, nil, `'{"spec":{"image":{"tag":"2026.2"}}}'`},
		{"a downgrade", keystone("2026.1", "", at261), keystone("2025.2", "", at261), []string{"DowngradeNotSupported"}, nil, `'{"spec":{"image":{"tag":"2026.1"}}}'`},
		{"a third release in a walk", keystone("2026.2", "", walk), keystone("2027.1", "", walk), []string{"UpgradeTargetChanged"}, nil, `'{"spec":{"image":{"tag":"2026.2"}}}'`},
		{"nobody knows what, in a walk", keystone("2026.2", "", walk), keystone("latest", "", walk), []string{"UpgradeTargetChanged"}, nil, `'{"spec":{"image":{"tag":"2026.1"}}}'`},
		{"an abort", keystone("2026.2", "", walk), keystone("2026.1", "", walk), nil, []string{"DowngradeNotSupported"}, ""},
		{"an abort while contracting", keystone("2026.2", "", contracting), keystone("2026.1", "", contracting), nil, []string{"AbortWhileContracting", "DowngradeNotSupported"}, ""},
		{"ahead, a patch", keystone("2026.1", "", ahead), keystone("2026.1-p1", "", ahead), []string{"DowngradeNotSupported"}, nil, `'{"spec":{"image":{"tag":"2026.2"}}}'`},
		{"ahead, forward", keystone("2026.1", "", ahead), keystone("2026.2", "", ahead), nil, nil, ""},
		{"from a digest to a name", keystone("", rows.DigestA, opaque), keystone("2026.2", "", opaque), nil, []string{"ImageReleaseUnknown"}, ""},
		{"the same digest under the next tag", keystone("2026.1", rows.DigestA, upgrade.State{Installed: "2026.1", InstalledImage: keystones + ":2026.1@" + rows.DigestA}), keystone("2026.2", rows.DigestA, upgrade.State{}), []string{"ImageReleaseMismatch"}, nil, `{"digest":null,"tag":"2026.2"}`},
	} {
		t.Run(c.what, func(t *testing.T) {
			answer := h.ask(t, keystoneRequest(t, c.stored, c.wish))
			if c.refused == nil {
				require.True(t, answer.Allowed, "%+v", answer.Result)
				var warned []string
				for _, warning := range answer.Warnings {
					reason := regexp.MustCompile(`^spec\.image\.tag: (\w+): `).FindStringSubmatch(warning)
					require.NotNil(t, reason, warning)
					assert.NotContains(t, warning, "openStackRelease")
					warned = append(warned, reason[1])
				}
				assert.Equal(t, c.warned, warned)
				return
			}
			require.False(t, answer.Allowed)
			var refused []string
			for _, cause := range answer.Result.Details.Causes {
				assert.Equal(t, "spec.image.tag", cause.Field)
				refused = append(refused, regexp.MustCompile(`^\w+`).FindString(cause.Message))
			}
			assert.Equal(t, c.refused, refused)
			assert.Contains(t, answer.Result.Message, c.command)
			assert.NotContains(t, answer.Result.Message, "openStackRelease")
			commands := regexp.MustCompile(`(?m)^  (kubectl patch .*)$`).FindAllStringSubmatch(answer.Result.Message, -1)
			require.NotEmpty(t, commands)
			for _, command := range commands {
				args := kubectlArguments(t, command[1])
				assert.Equal(t, []string{"patch", "keystone", "identity", "-n", "openstack", "--type=merge"}, args[:6])
				text, err := jsonpatch.MergePatch(raw(t, c.stored), []byte(after(args, "-p")))
				require.NoError(t, err)
				var fixed v1alpha1.Keystone
				require.NoError(t, json.Unmarshal(text, &fixed))
				again := h.ask(t, keystoneRequest(t, c.stored, &fixed))
				assert.True(t, again.Allowed, "%s\n%+v", command[1], again.Result)
			}
		})
	}
}
