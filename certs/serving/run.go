package serving

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Run follows the directory until the context ends. It watches the directory
// and not the files: a Secret is swapped by renaming a symlink beside them,
// which a watch on a file never sees.
func (f *Follower) Run(ctx context.Context) error {
	slow := time.NewTicker(f.recheck)
	defer slow.Stop()
	soon := time.NewTimer(f.settle)
	defer soon.Stop()

	var events <-chan fsnotify.Event
	var faults <-chan error
	watch := func() {}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		f.log.Error(err, "the directory cannot be watched, looking at it from time to time", "every", f.recheck.String())
	} else {
		defer func() { _ = watcher.Close() }()
		events, faults = watcher.Events, watcher.Errors
		// Adding again is how a directory that was replaced is found.
		watch = func() {
			if err := watcher.Add(f.dir); err != nil {
				f.log.V(1).Info("watch directory", "error", err.Error())
			}
		}
	}
	watch()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-events:
			soon.Reset(f.settle)
		case err := <-faults:
			f.log.Error(err, "watch directory", "directory", f.dir)
			soon.Reset(f.settle)
		case <-slow.C:
			watch()
			f.look()
		case <-soon.C:
			f.look()
		}
	}
}
