package harness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

var shared *Env

// Main is the TestMain of a package whose tests share one world: it starts it, runs the tests, stops it, and exits.
// inTheEnd is asked of the world after every test has passed, and only if all of them ran.
func Main(m *testing.M, inTheEnd ...func(*Env) error) {
	os.Exit(run(m, inTheEnd))
}

func run(m *testing.M, inTheEnd []func(*Env) error) (code int) {
	started := time.Now()
	env, err := Start(context.Background())
	if err != nil {
		fmt.Fprintf(os.Stderr, "start the test environment: %v\n", err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "test environment: API server and controllers up in %s, logs in %s\n", time.Since(started).Round(100*time.Millisecond), env.Dir)
	if err := manyAtOnce(); err != nil {
		fmt.Fprintf(os.Stderr, "set -parallel: %v\n", err)
		return 1
	}
	shared = env
	code = m.Run()
	shared = nil
	if code == 0 && everyTest() {
		for _, check := range inTheEnd {
			if err := check(env); err != nil {
				fmt.Fprintf(os.Stderr, "in the end: %v\n", err)
				code = 1
			}
		}
	}
	if err := env.manager.exited(); err != nil {
		fmt.Fprintf(os.Stderr, "the tests ran without controllers: %v\n", err)
		code = 1
	}
	return env.Conclude(code)
}

// Conclude stops the world, says where its logs are if anything has failed, and gives the exit code that comes of that.
func (e *Env) Conclude(code int) int {
	if err := e.Stop(code != 0); err != nil {
		fmt.Fprintf(os.Stderr, "stop the test environment: %v\n", err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "logs of etcd, API server and controllers: %s\n", e.Dir)
	}
	return code
}

// everyTest is whether no flag left a test out.
func everyTest() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" && f.Value.String() != "." {
			return false
		}
	}
	return true
}

// manyAtOnce lets many tests run side by side, unless -parallel says otherwise: they wait for controllers, not for a CPU.
func manyAtOnce() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", "16")
}

// Shared is the world that Main started.
func Shared(t testing.TB) *Env {
	t.Helper()
	if shared == nil {
		t.Fatal("no test environment: the package needs `func TestMain(m *testing.M) { harness.Main(m) }`")
	}
	return shared
}
