package test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/release"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

const generated = "../deploy/base/crds"

func TestTheCommittedCRDIsWhatTheTypesSay(t *testing.T) {
	tools, err := binaries.Ensure(t.Context(), t.Logf, "controller-gen")
	require.NoError(t, err)
	fresh := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(tools, "controller-gen"), "crd:maxDescLen=2000", "paths=./shared/api/...", "output:crd:dir="+fresh)
	cmd.Dir = ".."
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)

	want, err := filepath.Glob(filepath.Join(fresh, "*.yaml"))
	require.NoError(t, err)
	have, err := filepath.Glob(filepath.Join(generated, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, have, len(want))
	for _, file := range want {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		committed, err := os.ReadFile(filepath.Join(generated, filepath.Base(file)))
		require.NoError(t, err)
		require.True(t, string(text) == string(committed), "%s is out of date; run make generate", filepath.Base(file))
	}
}

func TestTheCRDsHoldTheShapesThatTheCodeKnows(t *testing.T) {
	crds := pick[*apiextensionsv1.CustomResourceDefinition](build(t, "base"))
	var plurals []string
	for _, kind := range admission.Kinds {
		plurals = append(plurals, kind.Resource)
	}
	require.Len(t, crds, len(plurals))
	for _, crd := range crds {
		t.Run(crd.Spec.Names.Kind, func(t *testing.T) {
			assert.Contains(t, plurals, crd.Spec.Names.Plural, "every kind is judged at admission")
			assertShapes(t, crd)
		})
	}
	spec := crdOf(t, "Glance").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	assert.Equal(t, release.Pattern, spec.Properties["openStackRelease"].Pattern)
	spec = crdOf(t, "Keystone").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	assert.NotContains(t, spec.Properties, "openStackRelease", "the tag names the release")
}

func assertShapes(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	assert.Equal(t, v1alpha1.GroupVersion.Group, crd.Spec.Group)
	version := crd.Spec.Versions[0]
	assert.Equal(t, v1alpha1.GroupVersion.Version, version.Name)
	assert.NotNil(t, version.Subresources.Status)
	root := version.Schema.OpenAPIV3Schema
	require.Greater(t, len(root.XValidations), 1)
	assert.Contains(t, root.XValidations[0].Rule, "self.metadata.name.size() <= "+decimal(int32(v1alpha1.MaxNameLength)))
	assert.Contains(t, root.XValidations[0].Message, decimal(int32(v1alpha1.MaxNameLength)))
	assert.Contains(t, root.XValidations[1].Rule, "'"+v1alpha1.NamePattern+"'")

	var columns []string
	for _, column := range version.AdditionalPrinterColumns {
		if column.Priority == 0 {
			columns = append(columns, column.Name)
		}
	}
	assert.Equal(t, []string{"Ready", "Release", "Target", "Phase", "Age"}, columns)
}

func TestTheCRDFitsIntoTheAnnotationOfKubectlApply(t *testing.T) {
	const limit = 256 << 10
	for _, crd := range pick[*apiextensionsv1.CustomResourceDefinition](build(t, "base")) {
		text, err := json.Marshal(crd)
		require.NoError(t, err)
		assert.Less(t, len(text), limit*3/4, crd.Name)
	}
}

func TestEverySampleIsAcceptedByTheCRD(t *testing.T) {
	files, err := filepath.Glob("../deploy/samples/*.yaml")
	require.NoError(t, err)
	judged := map[string]bool{}
	for _, file := range files {
		for _, object := range read(t, file) {
			if object.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
				continue
			}
			judged[object.GetKind()] = true
			assert.Empty(t, crdSchema(t, object.GetKind()).refuses(t, object), "%s", file)
		}
	}
	assert.Len(t, judged, len(admission.Kinds), "a sample of every kind")
}

func TestNoSampleHasAKeyThatWorks(t *testing.T) {
	seen := 0
	for _, object := range read(t, "../deploy/samples/keystone-secrets.yaml") {
		key, isKey, err := unstructured.NestedString(object.Object, "stringData", "0")
		require.NoError(t, err)
		if !isKey {
			continue
		}
		seen++
		bytes, err := base64.URLEncoding.DecodeString(key)
		assert.False(t, err == nil && len(bytes) == 32, "%s: %s can be used, and everybody knows it", object.GetName(), key)
	}
	assert.Equal(t, 2, seen, "fernet and credential keys")
}

func TestTheCRDAloneRefusesWhatHasNoShape(t *testing.T) {
	schema := crdSchema(t, "Glance")
	spec := func(change func(spec map[string]any)) func(*unstructured.Unstructured) {
		return func(object *unstructured.Unstructured) { change(object.Object["spec"].(map[string]any)) }
	}
	image := func(fields map[string]any) func(*unstructured.Unstructured) {
		return spec(func(spec map[string]any) { spec["image"] = fields })
	}
	cases := map[string]struct {
		change func(*unstructured.Unstructured)
		says   string
	}{
		"a third release of a year":       {spec(func(spec map[string]any) { spec["openStackRelease"] = "2026.3" }), "spec.openStackRelease"},
		"a release of two digits":         {spec(func(spec map[string]any) { spec["openStackRelease"] = "26.1" }), "spec.openStackRelease"},
		"a release with a space":          {spec(func(spec map[string]any) { spec["openStackRelease"] = " 2026.1" }), "spec.openStackRelease"},
		"a release of other digits":       {spec(func(spec map[string]any) { spec["openStackRelease"] = "２０２６.１" }), "spec.openStackRelease"},
		"a release with a line feed":      {spec(func(spec map[string]any) { spec["openStackRelease"] = "2026.1\n" }), "spec.openStackRelease"},
		"no release":                      {spec(func(spec map[string]any) { delete(spec, "openStackRelease") }), "spec.openStackRelease"},
		"no tag and no digest":            {image(map[string]any{"repository": "glance"}), "tag, digest or both"},
		"a tag with a colon":              {image(map[string]any{"repository": "glance", "tag": "a:b"}), "spec.image.tag"},
		"half a digest":                   {image(map[string]any{"repository": "glance", "digest": "sha256:abc"}), "spec.image.digest"},
		"no database":                     {spec(func(spec map[string]any) { delete(spec, "database") }), "spec.database"},
		"a field nobody knows":            {spec(func(spec map[string]any) { spec["release"] = "2026.1" }), "spec.release"},
		"a name that is too long":         {func(object *unstructured.Unstructured) { object.SetName(strings.Repeat("a", v1alpha1.MaxNameLength+1)) }, "51 are possible"},
		"a name with a dot":               {func(object *unstructured.Unstructured) { object.SetName("img.a") }, "NameInvalid: metadata.name must begin with a letter"},
		"a name that begins with a digit": {func(object *unstructured.Unstructured) { object.SetName("2images") }, "NameInvalid: metadata.name must begin with a letter"},
		"a rollout that cannot move": {spec(func(spec map[string]any) {
			spec["deployment"] = map[string]any{"strategy": map[string]any{"maxSurge": "0%", "maxUnavailable": int64(0)}}
		}), "cannot both be 0"},
		"a label value with a space": {spec(func(spec map[string]any) {
			spec["jobs"] = map[string]any{"podLabels": map[string]any{"x": "has space"}}
		}), "spec.jobs.podLabels.x"},
		"a Secret without a name":  {spec(func(spec map[string]any) { spec["configSecretRefs"] = []any{map[string]any{}} }), "configSecretRefs[0].name"},
		"a section with a bracket": {spec(func(spec map[string]any) { spec["extraConfig"] = map[string]any{"a]b": map[string]any{"c": "d"}} }), "single words"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object := sample(t)
			c.change(object)
			assert.Contains(t, strings.Join(schema.refuses(t, object), "\n"), c.says)
		})
	}
	longest := sample(t)
	longest.SetName(strings.Repeat("a", v1alpha1.MaxNameLength))
	assert.Empty(t, schema.refuses(t, longest), "the longest name that is allowed")
}

func TestTheCRDAloneRefusesAKeystoneThatHasNoShape(t *testing.T) {
	schema := crdSchema(t, "Keystone")
	for name, c := range map[string]struct {
		change func(spec map[string]any)
		says   string
	}{
		"a release beside the tag":     {func(spec map[string]any) { spec["openStackRelease"] = "2026.1" }, "spec.openStackRelease: unknown field"},
		"no tag and no digest":         {func(spec map[string]any) { spec["image"] = map[string]any{"repository": "keystone"} }, "tag, digest or both"},
		"a bootstrap without password": {func(spec map[string]any) { spec["bootstrap"] = map[string]any{"username": "admin"} }, "spec.bootstrap.passwordSecretRef"},
		"keys without a name":          {func(spec map[string]any) { spec["fernetKeysSecretRef"] = map[string]any{} }, "spec.fernetKeysSecretRef.name"},
	} {
		t.Run(name, func(t *testing.T) {
			object := read(t, "../deploy/samples/keystone.yaml")[0]
			c.change(object.Object["spec"].(map[string]any))
			assert.Contains(t, strings.Join(schema.refuses(t, object), "\n"), c.says)
		})
	}
}

func TestTheDatabaseIsTheSameForAWholeWalk(t *testing.T) {
	for kind, file := range map[string]string{"Glance": "glance", "Keystone": "keystone"} {
		assertSameDatabase(t, crdSchema(t, kind), read(t, "../deploy/samples/"+file+".yaml")[0])
	}
}

func assertSameDatabase(t *testing.T, schema floor, sample *unstructured.Unstructured) {
	t.Helper()
	moved := func(phase string) []string {
		before := sample.DeepCopy()
		require.NoError(t, unstructured.SetNestedField(before.Object, phase, "status", "upgradePhase"))
		after := before.DeepCopy()
		require.NoError(t, unstructured.SetNestedField(after.Object, "elsewhere", "spec", "database", "secretRef", "name"))
		return schema.refusesChange(t, before, after)
	}
	assert.Empty(t, moved(""))
	for _, phase := range upgrade.Phases {
		assert.Contains(t, strings.Join(moved(string(phase)), "\n"), "spec.database cannot change", phase)
	}
}

// floor judges objects as the API server does with nothing but the CRD.
type floor struct {
	structural *structural.Structural
	shape      validation.SchemaValidator
	rules      *cel.Validator
}

// crdOf is the CRD of a kind.
func crdOf(t *testing.T, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	for _, crd := range pick[*apiextensionsv1.CustomResourceDefinition](build(t, "base")) {
		if crd.Spec.Names.Kind == kind {
			return crd
		}
	}
	require.Fail(t, "there is no CRD", kind)
	return nil
}

func crdSchema(t *testing.T, kind string) floor {
	t.Helper()
	crd := crdOf(t, kind)
	var internal apiextensions.CustomResourceValidation
	require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(crd.Spec.Versions[0].Schema, &internal, nil))
	schema, err := structural.NewStructural(internal.OpenAPIV3Schema)
	require.NoError(t, err)
	require.Empty(t, structural.ValidateStructural(nil, schema))
	shape, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	require.NoError(t, err)
	return floor{structural: schema, shape: shape, rules: cel.NewValidator(schema, true, celconfig.PerCallLimit)}
}

// refuses lists what is wrong with an object, unknown fields included: kubectl reports those by default.
func (f floor) refuses(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	fields := object.DeepCopy().Object
	defaulting.Default(fields, f.structural)
	var found []string
	for _, unknown := range pruning.PruneWithOptions(fields, f.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		found = append(found, unknown+": unknown field")
	}
	problems := validation.ValidateCustomResource(nil, fields, f.shape)
	if !slices.ContainsFunc(problems, blocking) {
		broken, _ := f.rules.Validate(t.Context(), nil, f.structural, fields, nil, celconfig.RuntimeCELCostBudget)
		problems = append(problems, broken...)
	}
	for _, problem := range problems {
		found = append(found, problem.Error())
	}
	return found
}

// blocking is what keeps the API server from looking at the rules.
func blocking(problem *field.Error) bool {
	return slices.Contains([]field.ErrorType{field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid}, problem.Type)
}

// refusesChange lists which rules an edit breaks.
func (f floor) refusesChange(t *testing.T, before, after *unstructured.Unstructured) []string {
	t.Helper()
	defaulting.Default(before.Object, f.structural)
	defaulting.Default(after.Object, f.structural)
	problems, _ := f.rules.Validate(t.Context(), nil, f.structural, after.Object, before.Object, celconfig.RuntimeCELCostBudget)
	var found []string
	for _, problem := range problems {
		found = append(found, problem.Error())
	}
	return found
}

func sample(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return read(t, "../deploy/samples/glance.yaml")[0]
}

func read(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.Open(file)
	require.NoError(t, err)
	defer content.Close()
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(content, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			require.NoError(t, err, "%s", file)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

func TestAnAPIServerTakesTheCRDsWithTheirRules(t *testing.T) {
	for _, crd := range pick[*apiextensionsv1.CustomResourceDefinition](build(t, "base")) {
		crd = crd.DeepCopy()
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		var internal apiextensions.CustomResourceDefinition
		require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil))
		internal.Status.StoredVersions = []string{v1alpha1.GroupVersion.Version}
		assert.Empty(t, crdvalidation.ValidateCustomResourceDefinition(t.Context(), &internal), "fields that messages point at, types and cost of the rules of %s", crd.Name)
	}
}

// What a person reads when the CRD answers, which it does before the webhook is asked.
func generating(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetGenerateName("images-")
	return object
}

func TestTheCRDAnswersWithASentenceAndACommand(t *testing.T) {
	schema := crdSchema(t, "Glance")
	asking := func(release, tag, name string) *unstructured.Unstructured {
		object := sample(t)
		spec := object.Object["spec"].(map[string]any)
		spec["openStackRelease"], spec["image"] = release, map[string]any{"repository": "glance", "tag": tag}
		object.SetName(name)
		return object
	}
	long := strings.Repeat("a", 60)
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		says   []string
	}{
		"the tag names a release": {asking("2026.3", "2026.1-p1", "images"), []string{`spec.openStackRelease: Invalid value: "2026.3": spec.openStackRelease in body should match '^\d{4}\.[12]$'`,
			`spec.openStackRelease: Invalid value: VersionParseError: "2026.3" is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1. To ask for the release that tag 2026.1-p1 names, with the -n that you used: kubectl patch -f FILE --local --type=merge -p '{"spec":{"openStackRelease":"2026.1"}}' -o yaml | kubectl apply -f -`}},
		"the tag names none": {asking("2026.3", "latest", "images"), []string{`spec.openStackRelease: Invalid value: "2026.3": spec.openStackRelease in body should match '^\d{4}\.[12]$'`,
			`spec.openStackRelease: Invalid value: VersionParseError: "2026.3" is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1. Set it to the release that the image holds`}},
		"a name that is too long": {asking("2026.1", "2026.1", long), []string{`metadata: Invalid value: NameTooLong: metadata.name has 60 characters, 51 are possible: the Jobs of an upgrade are named after it (…-db-contract). ` +
			`To take a shorter one, with the -n that you used: kubectl patch -f FILE --local --type=merge -p '{"metadata":{"name":"` + long[:50] + `x"}}' -o yaml | kubectl apply -f -`}},
		"a long name and a tag that the webhook would refuse": {asking("2026.1", "2026.2", long), []string{
			`metadata: Invalid value: NameTooLong: metadata.name has 60 characters, 51 are possible: the Jobs of an upgrade are named after it (…-db-contract). Choose a shorter one`}},
		"a name that is yet to be made": {generating(asking("2026.3", "2026.1", "images-x7k2p")), []string{`spec.openStackRelease: Invalid value: "2026.3": spec.openStackRelease in body should match '^\d{4}\.[12]$'`,
			`spec.openStackRelease: Invalid value: VersionParseError: "2026.3" is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1. To ask for the release that tag 2026.1 names, with the -n that you used: kubectl patch -f FILE --local --type=merge -p '{"spec":{"openStackRelease":"2026.1"}}' -o yaml | kubectl create -f -`}},
		"both, and no command that mends only one": {asking("2026.3", "2026.1", long), []string{`spec.openStackRelease: Invalid value: "2026.3": spec.openStackRelease in body should match '^\d{4}\.[12]$'`,
			`metadata: Invalid value: NameTooLong: metadata.name has 60 characters, 51 are possible: the Jobs of an upgrade are named after it (…-db-contract). Choose a shorter one`,
			`spec.openStackRelease: Invalid value: VersionParseError: "2026.3" is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1. Set it to the release that the image holds`}},
		"a line break": {asking("2026.1\n", "2026.1", "images"), []string{`spec.openStackRelease: Invalid value: "2026.1\n": spec.openStackRelease in body should match '^\d{4}\.[12]$'`,
			`spec.openStackRelease: Invalid value: VersionParseError: it must be YYYY.1 or YYYY.2, such as 2026.1`}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.says, schema.refuses(t, c.object)) })
	}

	before := asking("2026.1", "2026.1", "images")
	before.Object["status"] = map[string]any{"installedRelease": "2025.2"}
	after := before.DeepCopy()
	after.Object["spec"].(map[string]any)["openStackRelease"] = "2026.3"
	assert.Equal(t, []string{`spec.openStackRelease: Invalid value: VersionParseError: "2026.3" is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1; 2025.2 is installed. ` +
		`To stay at 2026.1, with the -n that you used: kubectl patch glance images --type=merge -p '{"spec":{"openStackRelease":"2026.1"}}'`}, schema.refusesChange(t, before, after))

	stored := asking("2026.3", "latest", long)
	edited := stored.DeepCopy()
	edited.SetLabels(map[string]string{"team": "images"})
	assert.Empty(t, schema.refusesChange(t, stored, edited), "what is stored already stays editable")
}

func TestTheRuleForReleasesAgreesWithPatternAndParser(t *testing.T) {
	schema := crdSchema(t, "Glance")
	for _, text := range []string{"2026.1", "2026.2", "0000.1", "9999.2", "2026.0", "2026.3", "2026.01", "26.1", "", " 2026.1", "2026.1 ", "2026.1\n", "\n2026.1", "v2026.1", "2026.1.0", "2026,1", "２０２６.１", "2026.1-p1", "latest"} {
		object := sample(t)
		object.Object["spec"].(map[string]any)["openStackRelease"] = text
		refusals := strings.Join(schema.refuses(t, object), "\n")
		_, err := release.Parse(text)
		assert.Equal(t, err != nil, strings.Contains(refusals, "should match"), "pattern and parser: %q", text)
		assert.Equal(t, err != nil, strings.Contains(refusals, "VersionParseError"), "rule and parser: %q", text)
	}
}
