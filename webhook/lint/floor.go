package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/c5c3/openstack-upgrade/deploy/base/crds"
)

// floor is what the CRD of one kind refuses by itself.
type floor struct {
	schema *spec.Schema
}

// readFloors reads the CRDs that are part of this program, by kind; once, for
// they are long.
var readFloors = sync.OnceValues(func() (map[string]*floor, error) {
	floors := map[string]*floor{}
	names, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list CRDs: %w", err)
	}
	for _, name := range names {
		text, err := crds.Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read CRD: %w", err)
		}
		kind, schema, err := readSchema(text)
		if err != nil {
			return nil, fmt.Errorf("read CRD %s: %w", name, err)
		}
		floors[kind] = &floor{schema: schema}
	}
	return floors, nil
})

func readSchema(text []byte) (kind string, schema *spec.Schema, err error) {
	var crd struct {
		Spec struct {
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema *spec.Schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return "", nil, err
	}
	if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Schema.OpenAPIV3Schema == nil {
		return "", nil, errors.New("one version with a schema is expected")
	}
	schema = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if unknown := strange(schema); len(unknown) > 0 {
		return "", nil, fmt.Errorf("rule %q is not known to lint", unknown[0])
	}
	return crd.Spec.Names.Kind, schema, nil
}

// refuses lists what is wrong with the shape of an object.
func (f *floor) refuses(raw []byte) ([]Finding, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	found := ofMetadata(raw)
	dropNulls(object, f.schema)
	for _, problem := range validate.NewSchemaValidator(f.schema, nil, "", strfmt.Default).Validate(object).Errors {
		found = append(found, ofShape(problem))
	}
	return append(found, ofFields("", object, f.schema)...), nil
}

// dropNulls takes out what is said to be nothing, as the API server does where
// a field has no use for null: YAML makes one of every key without a value.
func dropNulls(value any, schema *spec.Schema) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			property, known := schema.Properties[key]
			if !known && schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
				property, known = *schema.AdditionalProperties.Schema, true
			}
			switch {
			case !known:
			case inner == nil && !property.Nullable:
				delete(value, key)
			default:
				dropNulls(inner, &property)
			}
		}
	case []any:
		if schema.Items == nil || schema.Items.Schema == nil {
			return
		}
		for _, item := range value {
			dropNulls(item, schema.Items.Schema)
		}
	}
}

func invalid(path, message string) Finding {
	return Finding{Field: path, Reason: InvalidField, Message: string(InvalidField) + ": " + message}
}

func unknown(path string) Finding {
	return Finding{Field: path, Reason: UnknownField, Message: fmt.Sprintf("%s: there is no field %s", UnknownField, path)}
}

// ofMetadata judges what is no part of a CRD's schema: the API server reads it
// by its type.
func ofMetadata(raw []byte) []Finding {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	problems, err := kjson.UnmarshalStrict(raw, &object)
	if err != nil {
		return []Finding{invalid("metadata", "metadata cannot be read: "+strings.TrimPrefix(err.Error(), "json: "))}
	}
	var found []Finding
	for _, problem := range problems {
		var field kjson.FieldError
		if errors.As(problem, &field) && strings.HasPrefix(field.FieldPath(), "metadata.") {
			found = append(found, unknown(field.FieldPath()))
		}
	}
	if object.Metadata.Name == "" && object.Metadata.GenerateName == "" {
		found = append(found, invalid("metadata.name", "metadata.name is required"))
	}
	return found
}

// ofShape tells what the schema has against a value, with a word about the
// mistake that YAML invites.
func ofShape(problem error) Finding {
	var wrong *openapierrors.Validation
	if !errors.As(problem, &wrong) {
		return invalid("", problem.Error())
	}
	path, message := strings.TrimPrefix(wrong.Name, "."), strings.TrimPrefix(wrong.Error(), ".")
	if wrong.Code() == openapierrors.InvalidTypeCode && (path == "spec.openStackRelease" || path == "spec.image.tag") {
		message += "; without quotes YAML reads a number, so put it in quotes"
	}
	return invalid(path, message)
}

// ofFields lists the fields that a schema does not have, which the API server
// drops and kubectl refuses, and the values that break a rule.
func ofFields(path string, value any, schema *spec.Schema) []Finding {
	var found []Finding
	switch value := value.(type) {
	case map[string]any:
		for _, v := range validationsOf(schema) {
			if r := rules[v.rule]; r.holds != nil && !r.holds(value) {
				found = append(found, invalid(path, v.message))
			}
		}
		if len(schema.Properties) == 0 && schema.AdditionalProperties == nil {
			return found // anything goes
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := strings.TrimPrefix(path+"."+key, ".")
			property, known := schema.Properties[key]
			switch {
			case known:
				found = append(found, ofFields(below, value[key], &property)...)
			case schema.AdditionalProperties == nil || schema.AdditionalProperties.Schema == nil:
				found = append(found, unknown(below))
			default:
				found = append(found, ofFields(below, value[key], schema.AdditionalProperties.Schema)...)
			}
		}
	case []any:
		if schema.Items == nil || schema.Items.Schema == nil {
			return nil
		}
		for i, item := range value {
			found = append(found, ofFields(fmt.Sprintf("%s[%d]", path, i), item, schema.Items.Schema)...)
		}
	}
	return found
}
