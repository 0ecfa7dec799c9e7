package upgrade

import (
	"fmt"
	"strings"
)

// Held says what holds the contract back, empty when nothing does: contract
// drops what the previous release reads, so it must not start while a single
// pod of it is left, and Available alone does not tell that. It judges what
// it is given; Decide insists that the pods were read past any cache.
func Held(d Deployment, image string) string {
	switch {
	case d.Standing == Foreign:
		return fmt.Sprintf("Deployment %s belongs to %s", d.Name, whose(d.Owner))
	case d.Standing == Absent:
		return "the Deployment does not exist yet"
	case d.Standing == Leaving:
		return fmt.Sprintf("Deployment %s is being deleted", d.Name)
	case d.Paused:
		return d.PausedWords()
	case d.Image != image || d.Unrendered:
		return fmt.Sprintf("Deployment %s does not carry the template of %s yet", d.Name, image)
	case d.Unobserved:
		return fmt.Sprintf("the newest template of Deployment %s is not observed yet", d.Name)
	case d.Updated != d.Replicas || d.Total != d.Replicas || d.Available != d.Replicas:
		return fmt.Sprintf("%d of %d pods are updated, %d available, %d in all", d.Updated, d.Replicas, d.Available, d.Total)
	case len(d.Outdated) > 0:
		return "pods of the previous template are left: " + list(d.Outdated)
	case d.Replicas == 0 && d.Pods > 0:
		return fmt.Sprintf("no replicas are asked for and %d pods are left", d.Pods)
	}
	return ""
}

// list joins names for people: three, then how many more.
func list(names []string) string {
	const enough = 3
	if len(names) <= enough {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), len(names)-enough)
}
