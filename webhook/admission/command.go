package admission

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// subject is the object that an answer is about, as far as a command needs it.
type subject struct {
	kind      *Kind
	namespace string
	name      string
	// creates is set when there is no stored object yet; stored is then the
	// wish in the manifest.
	creates bool
	stored  upgrade.Desired
	// generates is set when the API server chooses the name: kubectl apply
	// refuses such a manifest, kubectl create takes it.
	generates bool
	// wished is what the request asks for. Whoever reads a warning may have it
	// stored by then or, after a dry run, not: a command must pass either way.
	wished upgrade.Desired
	// rename is the name to take instead, if any.
	rename string
}

// patch is a merge patch in the order in which a person reads it.
type patch struct {
	Metadata *patchMetadata `json:"metadata,omitempty"`
	Spec     *patchSpec     `json:"spec,omitempty"`
}

type patchMetadata struct {
	Name string `json:"name"`
}

type patchSpec struct {
	OpenStackRelease string             `json:"openStackRelease,omitempty"`
	Image            map[string]*string `json:"image"`
}

// advice says what to do about a violation, one paragraph for each way out.
// only is set when nothing else is wrong with the request.
func (s subject) advice(v violation, only bool) []string {
	var paragraphs []string
	for _, remedy := range v.remedies {
		p := s.patch(remedy, false)
		if !s.creates {
			paragraphs = append(paragraphs, fmt.Sprintf("To %s:\n  %s", remedy.Purpose, s.command(p)))
			continue
		}
		paragraphs = append(paragraphs, fmt.Sprintf("To %s, %s in the manifest, or, if FILE holds nothing else:\n  %s", remedy.Purpose, s.deeds(p), s.command(p)))
	}
	switch {
	case len(paragraphs) > 0:
	case v.path == namePath && only:
		p := patch{Metadata: &patchMetadata{Name: s.rename}}
		paragraphs = append(paragraphs, fmt.Sprintf("Choose another metadata.name in the manifest, or, if FILE holds nothing else:\n  %s", s.command(p)))
	case v.path == namePath:
		paragraphs = append(paragraphs, "Choose another metadata.name in the manifest.")
	case s.creates:
		paragraphs = append(paragraphs, fmt.Sprintf("Set %s in the manifest to the release that the image holds.", s.kind.path(upgrade.FieldRelease)))
	}
	if v.record {
		paragraphs = append(paragraphs, "To repair the status:\n  "+s.repair())
	}
	return paragraphs
}

// repair is for what only a person can decide.
func (s subject) repair() string {
	return fmt.Sprintf("kubectl edit %s %s -n %s --subresource=status", s.kind.Singular, quoted(s.name), quoted(s.namespace))
}

// patch turns the wish into the remedy: what the remedy lacks must be removed,
// because a merge patch leaves alone what it does not name.
func (s subject) patch(r upgrade.Remedy, warns bool) patch {
	image := map[string]*string{}
	if r.Image.Repository != s.stored.Image.Repository || warns && r.Image.Repository != s.wished.Image.Repository {
		image["repository"] = &r.Image.Repository
	}
	for _, part := range []struct{ name, stored, wished, wanted string }{
		{"tag", s.stored.Image.Tag, s.wished.Image.Tag, r.Image.Tag},
		{"digest", s.stored.Image.Digest, s.wished.Image.Digest, r.Image.Digest},
	} {
		switch {
		case part.wanted != "":
			image[part.name] = &part.wanted
		case part.stored != "" || warns && part.wished != "":
			image[part.name] = nil
		}
	}
	p := patch{Spec: &patchSpec{Image: image}}
	if s.kind.ReleaseField != "" {
		p.Spec.OpenStackRelease = r.Release
	}
	if s.rename != "" {
		p.Metadata = &patchMetadata{Name: s.rename}
	}
	return p
}

// deeds says in words what a patch changes in the manifest.
func (s subject) deeds(p patch) string {
	var deeds []string
	if p.Spec.OpenStackRelease != "" && p.Spec.OpenStackRelease != s.stored.Release {
		deeds = append(deeds, "set spec.openStackRelease to "+p.Spec.OpenStackRelease)
	}
	for _, part := range []struct{ name, stored string }{
		{"repository", s.stored.Image.Repository}, {"tag", s.stored.Image.Tag}, {"digest", s.stored.Image.Digest},
	} {
		switch value, named := p.Spec.Image[part.name]; {
		case !named || value != nil && *value == part.stored:
		case value == nil:
			deeds = append(deeds, "remove spec.image."+part.name)
		default:
			deeds = append(deeds, "set spec.image."+part.name+" to "+*value)
		}
	}
	if p.Metadata != nil {
		deeds = append(deeds, "change metadata.name")
	}
	if last := len(deeds) - 1; last > 0 {
		return strings.Join(deeds[:last], ", ") + " and " + deeds[last]
	}
	return strings.Join(deeds, "")
}

// command is what to type for a patch.
func (s subject) command(p patch) string {
	text, err := json.Marshal(p, json.Deterministic(true))
	if err != nil {
		// Only a text that is not UTF-8 gets here, and none was read in.
		return "no command can be given: " + err.Error()
	}
	return s.typed(string(text), s.generates && p.Metadata == nil)
}

// typed patches the stored object, or the manifest on its way to the cluster.
func (s subject) typed(patch string, nameless bool) string {
	if s.creates {
		deed := "apply"
		if nameless {
			deed = "create"
		}
		return fmt.Sprintf("kubectl patch -f FILE --local --type=merge -p %s -o yaml | kubectl %s -n %s -f -", inQuotes(patch), deed, quoted(s.namespace))
	}
	return fmt.Sprintf("kubectl patch %s %s -n %s --type=merge -p %s", s.kind.Singular, quoted(s.name), quoted(s.namespace), inQuotes(patch))
}

// quoted makes one word of a text for the shell, bare where that is safe.
func quoted(text string) string {
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_':
		default:
			return inQuotes(text)
		}
	}
	if text == "" {
		return "''"
	}
	return text
}

func inQuotes(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
