package admission

import "github.com/c5c3/openstack-upgrade/shared/upgrade"

// advices are warnings about a wish that the law accepts.
func (s subject) advices(all []upgrade.Advice) []string {
	var warnings []string
	for _, a := range all {
		purpose, command := "", ""
		if a.Remedy != nil {
			purpose, command = a.Remedy.Purpose, s.command(s.patch(*a.Remedy, true))
		}
		warnings = append(warnings, warning(s.kind.path(a.Field), a.Reason, a.Message, purpose, command))
	}
	return warnings
}

// notes are the warnings of the kind's own.
func (s subject) notes(all []Note) []string {
	var warnings []string
	for _, n := range all {
		warnings = append(warnings, warning(n.Path, n.Reason, n.Message, n.Purpose, s.typed(n.Patch, s.generates)))
	}
	return warnings
}

// warning is one line, because clients show it as one: where, why, and what to
// type to do without it.
func warning(path string, reason Reason, message, purpose, command string) string {
	said := clip(path+": "+string(reason)+": "+message, maxSaid)
	if command == "" {
		return said
	}
	return said + ". To " + purpose + ": " + command
}
