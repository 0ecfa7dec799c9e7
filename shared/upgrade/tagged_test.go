package upgrade

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keyedAtRest is a world at rest whose images name the releases, and whose
// tools read their own schema alone.
func keyedAtRest(image string, replicas int8) world {
	w := world{replicas: replicas, wish: Desired{Image: ref(image), Generation: 1, ByTag: true, Facts: Facts{ReadsOwnSchemaOnly: true}}}
	w.rest()
	return w
}

func turns(reference string) interference {
	act := asks("", reference)
	act.says = "ask for " + reference
	return act
}

// trusted is an image that names no release and holds 2026.1: nobody who says so takes it for a build of a later one.
func trusted(reference string) interference {
	act := turns(reference)
	return interference{act.says, func(w *world) {
		if w.schema.contracted < "2026.2" && w.state.Installed != "2026.2" {
			act.do(w)
		}
	}}
}

// restored is done once the pods are back.
func restored() interference {
	return interference{"a backup is restored, and status.expandedRelease removed", func(w *world) {
		back := Held(w.api.observe(w.config, int32(w.replicas)), w.state.InstalledImage) == ""
		for _, job := range w.jobs {
			back = back && (!job.exists || job.progress == Complete || job.progress == Failed)
		}
		if w.state.Ahead != "" && !w.state.Walking() && back {
			held := truth[w.state.InstalledImage]
			w.state.Ahead, w.schema = "", schema{held, held, held}
		}
	}}
}

func TestAWishByTagNamesTheReleaseThatItsImageNames(t *testing.T) {
	walk, opaque, opaqueWalk := upgrading(Migrating), installed(Unnamed, "r@sha256:a"), upgrading(Migrating)
	opaqueWalk.Installed, opaqueWalk.InstalledImage, opaqueWalk.TargetImage = Unnamed, "r@sha256:a", "r:2026.2@sha256:b"
	for _, c := range []struct {
		state State
		image string
		want  string
	}{
		{State{}, "r:2026.1", "2026.1"}, {State{}, "r:2026.1-bookworm", "2026.1"}, {State{}, "r:2026.1@sha256:a", "2026.1"},
		{State{}, "r:latest", Unnamed}, {State{}, "r@sha256:a", Unnamed}, {State{}, "r:2026.3", "2026.3"},
		{installed("2026.1", "r:2026.1"), "r:2026.3", "2026.3"}, {installed("2026.1", "r:2026.1"), "r:v2026.2", "v2026.2"},
		{installed("2026.1", "r:2026.1"), "r:2026.2.0", "2026.2.0"}, {installed("2026.1", "r:2026.1"), "r:26.2", "2026.1"},
		{installed(Unnamed, "r:2026.1.0"), "r:2026.1.0", Unnamed}, {walk, "r:2026.2_p1", "2026.2_p1"},
		{installed("2026.1", "r:2026.1"), "r@sha256:b", "2026.1"}, {installed("2026.1", "r:2026.1"), "r:2027.1", "2027.1"},
		{opaque, "r@sha256:b", Unnamed}, {opaque, "r:2026.2", "2026.2"},
		{walk, "r:2026.1-p9", "2026.1"}, {walk, "r:2026.2-p9", "2026.2"}, {walk, "r@sha256:b", Unknown}, {walk, "r:latest", Unknown},
		{opaqueWalk, "r@sha256:a", Unnamed}, {opaqueWalk, "r@sha256:b", "2026.2"}, {opaqueWalk, "r@sha256:c", Unknown},
	} {
		assert.Equal(t, c.want, Tagged(c.state, ref(c.image), 1).Release, "%s in %+v", c.image, c.state)
	}
}

func TestTheTableOfAdmissionByTag(t *testing.T) {
	opaque, ahead := installed(Unnamed, "r@sha256:a"), aborted("r:2026.1", "r:2026.2-p1")
	ahead.Ahead = "2026.2"
	walk := upgrading(Migrating)
	walk.Ahead = "2026.2"
	for _, c := range []struct {
		what   string
		stored State
		image  string
		says   string
		offers []string
		advice []string
	}{
		{"a patch", installed("2026.1", "r:2026.1"), "r:2026.1-p1", "", nil, nil},
		{"one step", installed("2026.1", "r:2026.1"), "r:2026.2", "", nil, nil},
		{"a skip", installed("2026.1", "r:2026.1"), "r:2027.1", "UpgradePathInvalid: 2026.1 → 2027.1 skips 2026.2; upgrade one release at a time", []string{"take the next step, 2026.2: r:2026.2"}, nil},
		{"a downgrade", installed("2026.2", "r:2026.2"), "r:2026.1", "DowngradeNotSupported: 2026.2 → 2026.1 goes backwards, and the schema is already at 2026.2: restore a backup, or roll forward", []string{"stay on 2026.2: r:2026.2"}, nil},
		{"the same digest under the next tag", installed("2026.1", "r:2026.1@sha256:a"), "r:2026.2@sha256:a", "ImageReleaseMismatch: 2026.1 → 2026.2 with the image unchanged (r:2026.2@sha256:a): nothing would migrate; change both together",
			[]string{"bump both to 2026.2: r:2026.2", "stay on 2026.1: r:2026.1@sha256:a"}, nil},
		{"a digest alone, first", State{}, "r@sha256:a", "", nil, []string{"ImageReleaseUnknown: digest sha256:a names no release: it is installed as it is, and nothing is known to compare with until a tag names one"}},
		{"a digest alone, later", installed("2026.1", "r:2026.1"), "r@sha256:a", "", nil, []string{"ImageReleaseUnknown: digest sha256:a names no release and is taken for a build of 2026.1: if it is a newer one, use a tag that names it, otherwise its schema changes run in one pass (name it, if it is 2026.2: 2026.2 r:2026.2)"}},
		{"a named one after a digest", opaque, "r:2026.2", "", nil, []string{"ImageReleaseUnknown: digest sha256:a, which is installed, names no release: it is trusted to hold the one before 2026.2, or 2026.2 itself (stay with what is installed: an unnamed release r@sha256:a)"}},
		{"the installed digest is named", opaque, "r:2026.1@sha256:a", "", nil, []string{"ImageReleaseUnknown: digest sha256:a is installed and named no release so far: it is trusted to hold 2026.1"}},
		{"an abort", walk, "r:2026.1", "", nil, []string{"DowngradeNotSupported: 2026.2 → 2026.1 aborts, but the database stays expanded for 2026.2 and 2026.1 cannot sync it: the pods go on serving with tag \"2026.1\" until you go forward again or restore a backup (go on to 2026.2: 2026.2 r:2026.2)"}},
		{"nobody knows what, in a walk", walk, "r@sha256:b", "UpgradeTargetChanged: the upgrade 2026.1 → 2026.2 is in phase Migrating and image r@sha256:b names no release, so it cannot be told to which of the two it belongs; finish it or abort it first",
			[]string{"go on to 2026.2: r:2026.2", "abort, back to 2026.1: r:2026.1"}, nil},
		{"ahead, as it is", ahead, "r:2026.1", "", nil, nil},
		{"ahead, forward", ahead, "r:2026.2", "", nil, nil},
		{"ahead, a patch", ahead, "r:2026.1-p1", "DowngradeNotSupported: the database may have been expanded for 2026.2 by an upgrade that was aborted, and then no build of 2026.1 can be synced with it: go forward, or restore a backup",
			[]string{"go forward to 2026.2: r:2026.2-p1", "stay on r:2026.1: r:2026.1"}, nil},
		{"ahead, a skip", ahead, "r:2027.1", "UpgradePathInvalid: 2026.1 → 2027.1 is not possible, the database may have been expanded for 2026.2 by an upgrade that was aborted: go forward to 2026.2 first",
			[]string{"go forward to 2026.2: r:2026.2-p1", "stay on r:2026.1: r:2026.1"}, nil},
		{"ahead, backwards", ahead, "r:2025.2", "UpgradePathInvalid: 2026.1 → 2025.2 is not possible, the database may have been expanded for 2026.2 by an upgrade that was aborted: only 2026.2 can follow",
			[]string{"go forward to 2026.2: r:2026.2-p1", "stay on r:2026.1: r:2026.1"}, nil},
		{"restored, as it was before the upgrade", State{Installed: "2026.1", InstalledImage: "r@sha256:a", AbortedImage: "r@sha256:a", Attempt: 1}, "r@sha256:a", "", nil, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := byTag(c.stored, c.image)
			rejection := Check(c.stored, d)
			if c.says == "" {
				require.Nil(t, rejection)
				before := byTag(c.stored, "r:before")
				assert.Equal(t, c.advice, told(Advise(c.stored, &before, d)))
				return
			}
			require.NotNil(t, rejection)
			assert.Equal(t, c.says, rejection.Error())
			var offers []string
			for _, remedy := range rejection.Remedies {
				offers = append(offers, fmt.Sprintf("%s: %s", remedy.Purpose, remedy.Image))
			}
			assert.Equal(t, c.offers, offers)
		})
	}
}

func TestEveryWalkByTagEndsWhateverInterruptsIt(t *testing.T) {
	t.Parallel()
	often := []interference{turns("r:2026.2"), turns("r:2026.1"), turns("r:2026.2-p1"), loss, newConfig, cleanUp, restored()}
	w := keyedAtRest("r:2026.1", 1)
	w.ask("", "r:2026.2")
	w.people, w.failures = 2, 1
	explore((*world).unsettled, often...).from("an upgrade is asked for", w).report(t)
}

func TestImagesThatNameNoReleaseNeverBringASyncBesidePodsOfAnother(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"r:2026.1", "r:2026.1@sha256:a", "r@sha256:a"} {
		w := keyedAtRest(from, 1)
		w.people = 2
		explore((*world).unsettled, trusted("r@sha256:a"), trusted("r@sha256:c"), turns("r:2026.1@sha256:a"), turns("r:2026.1"), turns("r:2026.2"), turns("r:2026.2@sha256:b")).
			from("at rest with "+from, w).report(t)
	}
}
