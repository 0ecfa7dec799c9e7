package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

// began makes the names of one run differ from those of another.
var began = time.Now().Unix()

// images asks an Image API.
type images struct {
	books *ledger.Ledger
	kept  kept[row]
}

type page struct {
	Images []row  `json:"images"`
	Next   string `json:"next"`
}

func (i *images) created() int { return len(i.kept.all()) }

// turn creates an image, reads it, finds it in a list, and reads an older one.
func (i *images) turn(ctx context.Context, c *client, n int) {
	made, err := create(ctx, c, fmt.Sprintf("traffic-%d-%d", began, n))
	if err == nil {
		_ = read(ctx, c, "read", made)
		_ = list(ctx, c, made)
	}
	if before, ok := i.kept.older(n); ok {
		_ = read(ctx, c, "read older", before)
	}
	if err == nil {
		i.kept.add(made)
	}
}

func create(ctx context.Context, c *client, name string) (made row, err error) {
	err = c.do(ctx, call{
		kind: "create", method: http.MethodPost, path: "/v2/images", want: http.StatusCreated, into: &made,
		body: map[string]string{"name": name, "disk_format": "raw", "container_format": "bare"},
		check: func(http.Header) error {
			if made.ID == "" || made.Name != name {
				return fmt.Errorf("asked for an image %s and got %+v", name, made)
			}
			return nil
		},
	})
	return made, err
}

func read(ctx context.Context, c *client, kind string, wanted row) error {
	var found row
	return c.do(ctx, call{
		kind: kind, method: http.MethodGet, path: "/v2/images/" + wanted.ID, want: http.StatusOK, into: &found,
		check: func(http.Header) error {
			if found != wanted {
				return fmt.Errorf("asked for %+v and got %+v", wanted, found)
			}
			return nil
		},
	})
}

func list(ctx context.Context, c *client, wanted row) error {
	var found page
	return c.do(ctx, call{
		kind: "list", method: http.MethodGet, path: "/v2/images?name=" + url.QueryEscape(wanted.Name), want: http.StatusOK, into: &found,
		check: func(http.Header) error {
			if len(found.Images) != 1 || found.Images[0] != wanted {
				return fmt.Errorf("%s is not in its list: %+v", wanted.Name, found.Images)
			}
			return nil
		},
	})
}

// sweep lists everything and looks for every image that was answered for.
func (i *images) sweep(ctx context.Context, c *client) {
	there := map[row]bool{}
	for path := "/v2/images?limit=200"; path != ""; {
		var found page
		if err := c.do(ctx, call{kind: "sweep", method: http.MethodGet, path: path, want: http.StatusOK, into: &found}); err != nil {
			break
		}
		for _, r := range found.Images {
			there[r] = true
		}
		path = found.Next
	}
	for _, r := range i.kept.all() {
		if !there[r] {
			i.books.Lose(time.Now(), fmt.Sprintf("image %s (%s) was created and is not listed any more", r.Name, r.ID))
		}
	}
}
