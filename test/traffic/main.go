// Command traffic is a client that notices everything. It looks the name of the service up once. Of an Image API it creates, reads and lists images without a
// pause; from an Identity API it gets tokens with a password, has them and older ones validated, and creates projects with them. It asks
// over fresh connections and over kept ones, and counts every request that fails and everything that was answered for
// and cannot be found again. It repeats nothing, so what it sees is what a client without retries sees.
//
// It ends by itself, at a deadline or a number of requests, or when it is told to (SIGTERM, or "stop" in its
// container). It writes a JSON line per second and a summary at the end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

type options struct {
	api         string
	user        string
	password    string
	url         string
	workers     int
	rate        float64
	duration    time.Duration
	maxRequests int
}

// The APIs that it knows.
const (
	imageAPI    = "image"
	identityAPI = "identity"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "stop" {
		if err := syscall.Kill(1, syscall.SIGTERM); err != nil {
			fail(err)
		}
		return
	}
	o, err := parse(os.Args[1:])
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if o.url, err = located(ctx, o.url); err != nil {
		fail(err)
	}
	if summary := run(ctx, o, os.Stdout); !summary.Good() {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "traffic:", err)
	os.Exit(2)
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("traffic", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.api, "api", imageAPI, "")
	flags.StringVar(&o.user, "user", "admin", "")
	flags.StringVar(&o.password, "password", "", "")
	flags.StringVar(&o.url, "url", "", "")
	flags.IntVar(&o.workers, "workers", 4, "")
	flags.Float64Var(&o.rate, "rate", 3, "")
	flags.DurationVar(&o.duration, "duration", 30*time.Minute, "")
	flags.IntVar(&o.maxRequests, "max-requests", 100_000, "")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("%w; it takes --api --user --password --url --workers --rate --duration --max-requests", err)
	}
	target, err := url.Parse(o.url)
	switch {
	case err != nil || target.Host == "":
		return o, fmt.Errorf("--url=%s: give the address of the API, like http://images.openstack.svc:9292", o.url)
	case o.api != imageAPI && o.api != identityAPI:
		return o, fmt.Errorf("--api=%s must be %s or %s", o.api, imageAPI, identityAPI)
	case o.api == identityAPI && o.password == "":
		return o, errors.New("--password is empty: an Identity API gives tokens for a password")
	case o.workers < 1 || o.workers > 256:
		return o, fmt.Errorf("--workers=%d must be between 1 and 256", o.workers)
	case o.rate <= 0 || o.rate > 10_000:
		return o, fmt.Errorf("--rate=%g: give the turns per second", o.rate)
	case o.duration <= 0 || o.maxRequests <= 0:
		return o, errors.New("--duration and --max-requests must be more than nothing: traffic ends by itself")
	}
	return o, nil
}

// run sends until it is told to stop, lets what is under way come to its end, looks for everything once more, and sums
// up.
func run(ctx context.Context, o options, out io.Writer) ledger.Summary {
	lines := json.NewEncoder(out)
	books := ledger.Open(time.Now())
	asked := o.service(books)
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		send(ctx, o, books, asked)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case now := <-tick.C:
			_ = lines.Encode(books.Second(now)) // a log that nobody takes is no reason to stop
			if books.Sent() >= o.maxRequests {
				cancel()
			}
		}
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer done()
	asked.sweep(last, newClient("sweep", o.url, true, books))
	summary := books.Close(time.Now(), asked.created())
	_ = lines.Encode(summary)
	return summary
}

func (o options) service(books *ledger.Ledger) service {
	if o.api == identityAPI {
		return &identity{books: books, user: o.user, password: o.password}
	}
	return &images{books: books}
}
