package lint

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// rules are the CRD's rules in CEL, each told again as a question to the value
// it stands at: an interpreter of CEL would be most of the webhook's memory. A
// rule without a question is the law's to judge, or needs an upgrade that is
// under way. A CRD with a rule that is not here is refused as a whole.
var rules = map[string]rule{
	`has(self.tag) || has(self.digest)`:                                                                                                                  {},
	`oldSelf.hasValue() || self.metadata.name.size() <= 51`:                                                                                              {},
	`oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`:                                                                   {},
	`oldSelf.hasValue() || self.spec.openStackRelease.matches('^[0-9]{4}[.][12]$')`:                                                                      {},
	`self.spec.openStackRelease == oldSelf.spec.openStackRelease || self.spec.openStackRelease.matches('^[0-9]{4}[.][12]$')`:                             {},
	`self.all(section, section.matches(r'^[^\s\[\]]+$') && self[section].all(option, option.matches(r'^[^\s=:\[\]#;]+$')))`:                              {holds: holdsSingleWords},
	`!(has(self.maxSurge) && has(self.maxUnavailable) && string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])`:            {holds: canMove},
	`!has(oldSelf.status) || !has(oldSelf.status.upgradePhase) || size(oldSelf.status.upgradePhase) == 0 || self.spec.database == oldSelf.spec.database`: {},
}

// rule is the question to a value.
type rule struct {
	holds func(self map[string]any) bool
}

var (
	sectionName = regexp.MustCompile(`^[^\s\[\]]+$`)
	optionName  = regexp.MustCompile(`^[^\s=:\[\]#;]+$`)
)

func holdsSingleWords(self map[string]any) bool {
	for section, options := range self {
		if !sectionName.MatchString(section) {
			return false
		}
		options, _ := options.(map[string]any)
		for option := range options {
			if !optionName.MatchString(option) {
				return false
			}
		}
	}
	return true
}

func canMove(self map[string]any) bool {
	zero := func(value any) bool { return slices.Contains([]string{"0", "0%"}, fmt.Sprint(value)) }
	return !zero(self["maxSurge"]) || !zero(self["maxUnavailable"])
}

// validation is one rule as a schema holds it.
type validation struct{ rule, message string }

func validationsOf(schema *spec.Schema) []validation {
	listed, _ := schema.Extensions["x-kubernetes-validations"].([]any)
	var all []validation
	for _, entry := range listed {
		fields, _ := entry.(map[string]any)
		text := func(key string) string { value, _ := fields[key].(string); return value }
		all = append(all, validation{rule: text("rule"), message: text("message")})
	}
	return all
}

// strange lists the rules that are not known here, in a schema and below it.
func strange(schema *spec.Schema) []string {
	var found []string
	for _, v := range validationsOf(schema) {
		if _, known := rules[v.rule]; !known {
			found = append(found, v.rule)
		}
	}
	for _, property := range schema.Properties {
		found = append(found, strange(&property)...)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		found = append(found, strange(schema.AdditionalProperties.Schema)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		found = append(found, strange(schema.Items.Schema)...)
	}
	return found
}
