package archive

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// index is the part of an OCI layout's index that names images.
type index struct {
	Manifests []struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"manifests"`
}

// The annotations under which an OCI layout names an image, the full name first.
var nameAnnotations = []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"}

// Names returns the images that a docker-archive or OCI tar holds, by the names it gives them.
func Names(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read image archive: %w", err)
	}
	defer file.Close()

	var docker []manifest
	var oci index
	found := false
	for entries := tar.NewReader(file); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read image archive %s: %w; give an uncompressed docker-archive or OCI tar", path, err)
		}
		var into any
		switch entry.Name {
		case "manifest.json":
			into = &docker
		case "index.json":
			into = &oci
		default:
			continue
		}
		found = true
		if err := json.NewDecoder(entries).Decode(into); err != nil {
			return nil, fmt.Errorf("read image archive %s: %s: %w", path, entry.Name, err)
		}
	}
	if !found {
		return nil, fmt.Errorf("%s holds no image: neither manifest.json nor index.json is in it", path)
	}

	var names []string
	for _, image := range docker {
		names = append(names, image.RepoTags...)
	}
	if len(names) > 0 {
		return names, nil
	}
	for _, image := range oci.Manifests {
		for _, key := range nameAnnotations {
			if name := image.Annotations[key]; name != "" {
				names = append(names, name)
				break
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s holds an image without a name: tag it first", path)
	}
	return names, nil
}
