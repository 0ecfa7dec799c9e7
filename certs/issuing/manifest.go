package issuing

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// ManifestFile is the file under certs/manifests that holds all objects.
const ManifestFile = "webhook.yaml"

const banner = "# Written by `make generate` from certs/issuing; edit the objects there.\n"

// Manifest writes the objects as one YAML file, without the fields that belong to the cluster.
func (s Serving) Manifest() ([]byte, error) {
	file := bytes.NewBufferString(banner)
	for _, object := range s.Objects() {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("turn %T into fields: %w", object, err)
		}
		unstructured.RemoveNestedField(fields, "status")
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
		text, err := yaml.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("write %T: %w", object, err)
		}
		fmt.Fprintf(file, "---\n%s", text)
	}
	return file.Bytes(), nil
}
