// Command write writes the manifests of the webhook's certificates into the directory it is given.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/c5c3/openstack-upgrade/certs/issuing"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: go run ./certs/issuing/write DIRECTORY")
	}
	manifest, err := issuing.Webhook.Manifest()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(args[0], issuing.ManifestFile), manifest, 0o644)
}
