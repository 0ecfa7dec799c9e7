package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/c5c3/openstack-upgrade/test/cluster/image"
	"github.com/c5c3/openstack-upgrade/test/cluster/lifecycle"
)

// References of the images that are built here.
const (
	WebhookImage    = "localhost/openstack-upgrade/webhook:dev"
	ControllerImage = "localhost/openstack-upgrade/controller:dev"
	TrafficImage    = "localhost/openstack-upgrade/traffic:dev"
)

// loaded notes which tar, named after its content, each reference in the node came from; it lies in the cluster's
// state and goes with it.
type loaded map[string]string

func (s *Stage) loadedFile() string { return filepath.Join(s.layout.State, "stage-images.json") }

func (s *Stage) readLoaded() (loaded, error) {
	known := loaded{}
	raw, err := os.ReadFile(s.loadedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read which images are in the node: %w", err)
	}
	return known, nil
}

// loadImages builds or fetches every image of the stage and puts those into the node that are not there. It returns
// the references that changed.
func (s *Stage) loadImages(ctx context.Context) (changed map[string]bool, err error) {
	changed = map[string]bool{}
	if err := s.loadPackaged(ctx, image.MariaDB, image.GlanceBookworm, image.GlanceTrixie); err != nil {
		return nil, err
	}
	for ref, dockerfile := range map[string]string{WebhookImage: "Dockerfile.webhook", ControllerImage: "Dockerfile.controller"} {
		tar, err := image.Build(ctx, s.Say, s.path(dockerfile), s.Root, ref, nil)
		if err != nil {
			return nil, err
		}
		if changed[ref], err = s.Load(ctx, ref, tar); err != nil {
			return nil, err
		}
	}
	tar, err := image.FromBinary(ctx, s.Say, TrafficImage, "github.com/c5c3/openstack-upgrade/test/traffic")
	if err != nil {
		return nil, err
	}
	changed[TrafficImage], err = s.Load(ctx, TrafficImage, tar)
	return changed, err
}

// LoadKeystone puts the images of Keystone into the node, for who needs them.
func (s *Stage) LoadKeystone(ctx context.Context) error {
	return s.loadPackaged(ctx, image.KeystoneBookworm, image.KeystoneTrixie)
}

// loadPackaged makes images of Debian's packages, once, and puts them into the node.
func (s *Stage) loadPackaged(ctx context.Context, names ...string) error {
	for _, name := range names {
		ref, err := image.Ref(name)
		if err != nil {
			return err
		}
		tar, err := image.Ensure(ctx, s.Say, name)
		if err != nil {
			return err
		}
		if _, err := s.Load(ctx, ref, tar); err != nil {
			return err
		}
	}
	return nil
}

// Load puts an image into the node unless it is there already, and tells whether it did.
func (s *Stage) Load(ctx context.Context, ref, tar string) (bool, error) {
	known, err := s.readLoaded()
	if err != nil {
		return false, err
	}
	if known[ref] == filepath.Base(tar) {
		return false, nil
	}
	s.Say("load image %s into the node", ref)
	if _, err := lifecycle.Load(ctx, s.Cluster, tar); err != nil {
		return false, err
	}
	known[ref] = filepath.Base(tar)
	raw, err := json.MarshalIndent(known, "", "  ")
	if err == nil {
		err = os.WriteFile(s.loadedFile(), raw, 0o600)
	}
	if err != nil {
		return false, fmt.Errorf("note which images are in the node: %w", err)
	}
	return true, nil
}
