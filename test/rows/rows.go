// Package rows is the decision table of admission as data: what is stored, what it is edited to, and the answer. The tests
// of the webhook ask it with reviews, those against a real API server with kubectl.
package rows

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// What the objects of the table are made of.
const (
	Repository = "registry.example.org:5000/openstack/glance"
	DigestA    = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	DigestB    = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	Namespace  = "openstack"
	Name       = "images"
)

// Row is one line of the table. A number of the design's table can have many.
type Row struct {
	Number int
	What   string
	// Stored is the object before, nil when a new one is created.
	Stored *v1alpha1.Glance
	Wish   *v1alpha1.Glance
	// Refused are the fields and reason words of a refusal in order, Warned those of the warnings; neither means admitted
	// without a word.
	Refused []string
	Warned  []string
	// Floor are the fields and reason words of what the CRD refuses before the webhook is asked.
	Floor []string
	// NoCommand is set where no command can be given, because only a person knows what would be right.
	NoCommand bool
	// Policy is for the row that an option of the webhook changes.
	Policy admission.Policy
}

// String is what is stored and what is asked, as a person would say it.
func (r Row) String() string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "== row %d: %s\n", r.Number, r.What)
	if r.Stored != nil {
		state := r.Stored.Status.State()
		_, _ = fmt.Fprintf(&b, "stored:  %s %s", r.Stored.Spec.OpenStackRelease, tail(r.Stored))
		if state.Installed != "" {
			_, _ = fmt.Fprintf(&b, ", installed %s", state.Installed)
		}
		if state.Walking() {
			_, _ = fmt.Fprintf(&b, ", %s to %q", state.Phase, state.Target)
		}
		_, _ = fmt.Fprintln(&b)
	}
	_, _ = fmt.Fprintf(&b, "request: %.20q %s\n", r.Wish.Spec.OpenStackRelease, tail(r.Wish))
	return b.String()
}

func tail(g *v1alpha1.Glance) string {
	return strings.TrimPrefix(g.Spec.Image.Reference().String(), Repository)
}

const (
	release = "spec.openStackRelease "
	tag     = "spec.image.tag "
	name    = "metadata.name "
)

// All is the table, in its order.
func All() []Row {
	named := func(text string) func(*v1alpha1.Glance) { return func(g *v1alpha1.Glance) { g.Name = text } }
	labelled := func(g *v1alpha1.Glance) { g.Labels = map[string]string{"team": "images"} }
	scaled := func(g *v1alpha1.Glance) { g.Spec.Deployment.Replicas = new(int32(5)) }
	deleted := func(g *v1alpha1.Glance) {
		g.DeletionTimestamp, g.Finalizers = new(metav1.Now()), []string{"example.org/keep"}
	}
	unfinalized := func(g *v1alpha1.Glance) { deleted(g); g.Finalizers = nil }
	workers := func(g *v1alpha1.Glance) { g.Spec.APIServer.Workers = new(int32(4)) }
	elsewhere := func(g *v1alpha1.Glance) { g.Spec.Image.Repository = "mirror.example.org/glance" }
	broken := func(change func(*v1alpha1.GlanceStatus)) *v1alpha1.Glance {
		g := Walking(Glance("2026.2", "2026.2", ""), upgrade.Migrating, "2026.1", "2026.1")
		change(&g.Status)
		return g
	}
	at261 := func() *v1alpha1.Glance { return Steady(Glance("2026.1", "2026.1", ""), "2026.1") }
	at262 := func() *v1alpha1.Glance { return Steady(Glance("2026.2", "2026.2", ""), "2026.2") }
	digest261 := func() *v1alpha1.Glance { return Steady(Glance("2026.1", "", DigestA), "2026.1") }
	latest261 := func() *v1alpha1.Glance { return Steady(Glance("2026.1", "latest", ""), "2026.1") }
	walk := func(phase upgrade.Phase) *v1alpha1.Glance {
		return Walking(Glance("2026.2", "2026.2", ""), phase, "2026.1", "2026.1")
	}
	all := []Row{
		{Number: 2, What: "tag of another release", Wish: Glance("2026.1", "2026.2", ""), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 2, What: "tag with a suffix is equal", Wish: Glance("2026.1", "2026.1-p1", "")},
		{Number: 3, What: "digest alone", Wish: Glance("2026.1", "", DigestA), Warned: []string{tag + "ImageReleaseUnknown"}},
		{Number: 3, What: "tag latest", Wish: Glance("2026.1", "latest", ""), Warned: []string{tag + "ImageReleaseUnknown"}},
		{Number: 3, What: "tag v2026.1", Wish: Glance("2026.1", "v2026.1", ""), Warned: []string{tag + "ImageReleaseUnknown"}},
		{Number: 3, What: "tag 2026.1.0", Wish: Glance("2026.1", "2026.1.0", ""), Warned: []string{tag + "ImageReleaseUnknown"}},
		{Number: 4, What: "tag that lies beside a digest", Wish: Glance("2026.1", "2026.2", DigestA), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 4, What: "tag that agrees beside a digest", Wish: Glance("2026.1", "2026.1", DigestA)},
		{Number: 5, What: "name of 51 characters", Wish: Glance("2026.1", "2026.1", "", named(strings.Repeat("a", 51)))},
		{Number: 5, What: "name of 52 characters", Wish: Glance("2026.1", "2026.1", "", named(strings.Repeat("a", 50)+"-b")), Refused: []string{name + "NameTooLong"}, Floor: []string{"metadata NameTooLong"}},
		{Number: 5, What: "name with a dot", Wish: Glance("2026.1", "2026.1", "", named("images.eu")), Refused: []string{name + "NameInvalid"}, Floor: []string{"metadata NameInvalid"}},
		{Number: 5, What: "long name that begins with a digit", Wish: Glance("2026.1", "2026.1", "", named("2"+strings.Repeat("a", 51))), Refused: []string{name + "NameTooLong", name + "NameInvalid"}, Floor: []string{"metadata NameTooLong", "metadata NameInvalid"}},
		{Number: 5, What: "long name and wrong tag", Wish: Glance("2026.1", "2026.2", "", named(strings.Repeat("a", 63))), Refused: []string{name + "NameTooLong", tag + "ImageReleaseMismatch"}, Floor: []string{"metadata NameTooLong"}},
		{Number: 5, What: "long name and a release that cannot be read", Wish: Glance("2026.3", "latest", "", named(strings.Repeat("a", 63))), Refused: []string{name + "NameTooLong", release + "VersionParseError"}, Floor: []string{"metadata NameTooLong", release + "VersionParseError"}, NoCommand: true},
		{Number: 5, What: "stored long name stays editable", Stored: Steady(Glance("2026.1", "2026.1", "", named(strings.Repeat("a", 63))), "2026.1"), Wish: Glance("2026.2", "2026.2", "", named(strings.Repeat("a", 63)))},
		{Number: 6, What: "nothing installed, another release", Stored: Glance("2026.1", "2026.1", ""), Wish: Glance("2027.1", "2027.1", "")},
		{Number: 6, What: "nothing installed, backwards", Stored: Glance("2026.2", "2026.2", ""), Wish: Glance("2026.1", "2026.1", ""), Warned: []string{release + "MovesBackwards"}},
		{Number: 6, What: "nothing installed, mismatch", Stored: Glance("2026.1", "2026.1", ""), Wish: Glance("2026.2", "2026.1", ""), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 6, What: "nothing installed, unreadable release", Stored: Glance("2026.1", "latest", ""), Wish: Glance("2026.3", "latest", ""), Refused: []string{release + "VersionParseError"}, Floor: []string{release + "VersionParseError"}},
		{Number: 7, What: "patch tag", Stored: at261(), Wish: Glance("2026.1", "2026.1-p1", "")},
		{Number: 7, What: "digest beside the tag", Stored: at261(), Wish: Glance("2026.1", "2026.1", DigestB)},
		{Number: 8, What: "release and tag in one edit", Stored: at261(), Wish: Glance("2026.2", "2026.2", "")},
		{Number: 9, What: "release without the tag", Stored: at261(), Wish: Glance("2026.2", "2026.1", ""), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 9, What: "tag without the release", Stored: at261(), Wish: Glance("2026.1", "2026.2", ""), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 9, What: "release without the tag, digest beside it", Stored: Steady(Glance("2026.1", "2026.1", DigestA), "2026.1"), Wish: Glance("2026.2", "2026.1", DigestB), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 9, What: "release without the tag, from another registry", Stored: at261(), Wish: Glance("2026.2", "2026.1", "", elsewhere), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 10, What: "digest unchanged", Stored: digest261(), Wish: Glance("2026.2", "", DigestA), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 10, What: "opaque tag unchanged", Stored: latest261(), Wish: Glance("2026.2", "latest", ""), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 11, What: "digest changed, release not", Stored: digest261(), Wish: Glance("2026.1", "", DigestB), Warned: []string{tag + "ImageReleaseUnknown"}},
		{Number: 11, What: "opaque tag changed, release not", Stored: latest261(), Wish: Glance("2026.1", "edge", ""), Warned: []string{tag + "ImageReleaseUnknown"}},
		{Number: 12, What: "downgrade", Stored: at262(), Wish: Glance("2026.1", "2026.1", ""), Refused: []string{release + "DowngradeNotSupported"}},
		{Number: 12, What: "downgrade of a digest", Stored: Steady(Glance("2026.2", "", DigestB), "2026.2"), Wish: Glance("2026.1", "", DigestA), Refused: []string{release + "DowngradeNotSupported"}},
		{Number: 13, What: "skip-level", Stored: at261(), Wish: Glance("2027.1", "2027.1", ""), Refused: []string{release + "UpgradePathInvalid"}},
		{Number: 13, What: "skip-level and wrong tag", Stored: at261(), Wish: Glance("2027.1", "2026.1", ""), Refused: []string{release + "UpgradePathInvalid", tag + "ImageReleaseMismatch"}},
		{Number: 13, What: "skip-level by digest", Stored: digest261(), Wish: Glance("2027.1", "", DigestB), Refused: []string{release + "UpgradePathInvalid"}},
		{Number: 14, What: "2026.2 to 2027.1", Stored: at262(), Wish: Glance("2027.1", "2027.1", "")},
		{Number: 16, What: "abort while contracting", Stored: walk(upgrade.Contracting), Wish: Glance("2026.1", "2026.1", ""), Warned: []string{release + "AbortWhileContracting"}},
		{Number: 16, What: "abort while contracting, tag still the target", Stored: walk(upgrade.Contracting), Wish: Glance("2026.1", "2026.2", ""), Warned: []string{release + "AbortWhileContracting", tag + "ImageReleaseMismatch"}},
		{Number: 16, What: "abort while contracting, refused by policy", Stored: walk(upgrade.Contracting), Wish: Glance("2026.1", "2026.1", ""), Refused: []string{release + "AbortWhileContracting"}, Policy: admission.Policy{RejectAbortWhileContracting: true}},
		{Number: 16, What: "abort asked for before, tag follows, policy set", Stored: func() *v1alpha1.Glance {
			g := walk(upgrade.Contracting)
			g.Spec.OpenStackRelease = "2026.1"
			return g
		}(), Wish: Glance("2026.1", "2026.1", ""), Warned: []string{release + "AbortWhileContracting"}, Policy: admission.Policy{RejectAbortWhileContracting: true}},
		{Number: 17, What: "third release", Stored: walk(upgrade.Migrating), Wish: Glance("2027.1", "2027.1", ""), Refused: []string{release + "UpgradeTargetChanged"}},
		{Number: 17, What: "third release, older", Stored: walk(upgrade.Contracting), Wish: Glance("2025.2", "2025.2", ""), Refused: []string{release + "UpgradeTargetChanged"}},
		{Number: 17, What: "third release that cannot be read", Stored: walk(upgrade.Expanding), Wish: Glance("2026.9", "2026.2", ""), Refused: []string{release + "VersionParseError"}, Floor: []string{release + "VersionParseError"}},
		{Number: 17, What: "third release, walk by digest", Stored: Walking(Glance("2026.2", "", DigestB), upgrade.Expanding, "2026.1", "2026.1"), Wish: Glance("2027.1", "", DigestA), Refused: []string{release + "UpgradeTargetChanged"}},
		{Number: 18, What: "another build of the target", Stored: walk(upgrade.Migrating), Wish: Glance("2026.2", "2026.2-p1", ""), Warned: []string{tag + "UpgradeStartsOver"}},
		{Number: 18, What: "back to the pinned build", Stored: walk(upgrade.Migrating), Wish: Glance("2026.2", "2026.2", "")},
		{Number: 19, What: "tag of another release than the target", Stored: walk(upgrade.RollingUpdate), Wish: Glance("2026.2", "2026.1", ""), Refused: []string{tag + "ImageReleaseMismatch"}},
		{Number: 20, What: "labels on an object that breaks a rule", Stored: Steady(Glance("2026.1", "2026.2", ""), "2026.1"), Wish: Glance("2026.1", "2026.2", "", labelled)},
		{Number: 20, What: "replicas of an object with a release that cannot be read", Stored: Steady(Glance("2026.3", "latest", ""), "2026.1"), Wish: Glance("2026.3", "latest", "", scaled)},
		{Number: 20, What: "finalizer of an object being deleted, release changed too", Stored: Steady(Glance("2026.1", "2026.1", "", deleted), "2026.1"), Wish: Glance("2027.1", "2026.1", "", unfinalized)},
		{Number: 20, What: "a deprecated field begins to be used", Stored: at261(), Wish: Glance("2026.1", "2026.1", "", workers), Warned: []string{"spec.apiServer.workers DeprecatedField"}},
		{Number: 20, What: "a deprecated field goes on being used", Stored: Steady(Glance("2026.1", "2026.1", "", workers), "2026.1"), Wish: Glance("2026.1", "2026.1", "", workers, labelled)},
		{Number: 20, What: "a deprecated field in a new object", Wish: Glance("2026.1", "2026.1", "", workers), Warned: []string{"spec.apiServer.workers DeprecatedField"}},
		{Number: 21, What: "phase unknown", Stored: broken(func(s *v1alpha1.GlanceStatus) { s.UpgradePhase = "Pondering" }), Wish: Glance("2026.1", "2026.1", ""), Refused: []string{release + "VersionParseError"}},
		{Number: 21, What: "phase without a target", Stored: broken(func(s *v1alpha1.GlanceStatus) { s.TargetRelease = "" }), Wish: Glance("2026.1", "2026.1", ""), Refused: []string{release + "VersionParseError"}},
		{Number: 21, What: "installed release cannot be read", Stored: broken(func(s *v1alpha1.GlanceStatus) { s.InstalledRelease = "yoga" }), Wish: Glance("2026.1", "2026.1", ""), Refused: []string{release + "VersionParseError"}},
		{Number: 21, What: "phase unknown, the image alone", Stored: broken(func(s *v1alpha1.GlanceStatus) { s.UpgradePhase = "Pondering" }), Wish: Glance("2026.2", "2026.2-p1", ""), Warned: []string{release + "VersionParseError"}},
		{Number: 21, What: "phase unknown, labels", Stored: broken(func(s *v1alpha1.GlanceStatus) { s.UpgradePhase = "Pondering" }), Wish: Glance("2026.2", "2026.2", "", labelled)},
	}
	for _, text := range []string{"2025.9", "2026.3", "26.1", " 2026.1", "2026.01", "２０２６.１", "", "2026.1\n", strings.Repeat("9", 10_000)} {
		floor := release + "VersionParseError"
		if len(text) > 64 {
			floor = release + "TooLong"
		}
		all = append(all, Row{Number: 1, What: fmt.Sprintf("%.20q with a tag", text), Wish: Glance(text, "2026.1", ""), Refused: []string{release + "VersionParseError"}, Floor: []string{floor}})
	}
	all = append(all, Row{Number: 1, What: "2026.3 with a tag that names none", Wish: Glance("2026.3", "latest", ""), Refused: []string{release + "VersionParseError"}, Floor: []string{release + "VersionParseError"}, NoCommand: true})
	for _, phase := range upgrade.Phases[:3] {
		all = append(all,
			Row{Number: 15, What: "abort in " + string(phase), Stored: walk(phase), Wish: Glance("2026.1", "2026.1", "")},
			Row{Number: 15, What: "abort in " + string(phase) + ", tag still the target", Stored: walk(phase), Wish: Glance("2026.1", "2026.2", ""), Warned: []string{tag + "ImageReleaseMismatch"}})
	}
	return all
}

// Glance is an object the way the API server would hold it.
func Glance(release, tag, digest string, change ...func(*v1alpha1.Glance)) *v1alpha1.Glance {
	g := &v1alpha1.Glance{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Glance"},
		ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: Namespace, Generation: 1},
		Spec: v1alpha1.GlanceSpec{
			OpenStackRelease: release,
			Image:            v1alpha1.ImageSpec{Repository: Repository, Tag: tag, Digest: digest},
			Database:         v1alpha1.DatabaseSpec{SecretRef: v1alpha1.SecretKeyReference{Name: "images-database", Key: "connection"}},
		},
	}
	for _, f := range change {
		f(g)
	}
	return g
}

// Steady records that the object's image serves a release.
func Steady(g *v1alpha1.Glance, installed string) *v1alpha1.Glance {
	g.Status.SetState(upgrade.State{Installed: installed, InstalledImage: g.Spec.Image.Reference().String()})
	return g
}

// Walking records a walk to what the object asks for.
func Walking(g *v1alpha1.Glance, phase upgrade.Phase, installed, installedTag string) *v1alpha1.Glance {
	g.Status.SetState(upgrade.State{Installed: installed, InstalledImage: Repository + ":" + installedTag, Phase: phase,
		Target: g.Spec.OpenStackRelease, TargetImage: g.Spec.Image.Reference().String(), Attempt: 2})
	return g
}
