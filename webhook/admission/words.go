package admission

import (
	"strings"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Verdict is one of the three answers.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "allowed"
	Denied  Verdict = "denied"
	Failed  Verdict = "error"
)

// Reason is a stable word for why an answer was given. A refusal by the law
// carries the law's own word.
type Reason = upgrade.Reason

// Reasons to allow.
const (
	Accepted     Reason = "Accepted"
	Unchanged    Reason = "Unchanged"
	BeingDeleted Reason = "BeingDeleted"
	StatusWrite  Reason = "StatusWrite"
	Deletion     Reason = "Deletion"
)

// Reasons to deny that are not the law's; AbortWhileContracting is one where
// the policy makes it one, and otherwise a warning.
const (
	NameTooLong           Reason = "NameTooLong"
	NameInvalid           Reason = "NameInvalid"
	AbortWhileContracting        = upgrade.AbortWhileContracting
)

// DeprecatedField is the reason of a warning about a field without effect.
const DeprecatedField Reason = "DeprecatedField"

// Warnings lists the reasons of warnings, for documents and tests.
var Warnings = append(append([]Reason{}, upgrade.AdviceReasons...), upgrade.VersionParseError, DeprecatedField)

// Reasons to answer with an error.
const (
	Malformed          Reason = "Malformed"
	UnsupportedVersion Reason = "UnsupportedVersion"
	UnknownRequest     Reason = "UnknownRequest"
	Undecodable        Reason = "Undecodable"
)

// Other stands in metrics for every kind and operation that is not ours, so
// that nobody outside can make their number grow.
const Other = "other"

// maxSaid bounds what a warning says before its command. The API server passes
// on 4096 characters of warnings for one request; beyond that it cuts each to
// 256, which still leaves the sentence.
const maxSaid = 256

// clip makes a text safe to repeat: one line, and no longer than the limit.
func clip(text string, limit int) string {
	var b strings.Builder
	count := 0
	for _, r := range text {
		if count == limit-1 && len(text) > b.Len()+len(string(r)) {
			b.WriteRune('…')
			break
		}
		if r < ' ' || r == 0x7f {
			r = ' '
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}
