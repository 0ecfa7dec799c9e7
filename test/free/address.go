// Package free finds addresses for programs that are told where to listen.
package free

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports below those that the kernel gives to connections of its own choice: what is free there stays free until the
// program listens, however many connections are made meanwhile.
const (
	lowest  = 10000
	highest = 32000
)

// Address is a local one that nobody listens on.
func Address(t testing.TB) string {
	t.Helper()
	var taken error
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(highest-lowest)))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			taken = err
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatalf("free a port: %v", err)
		}
		return address
	}
	t.Fatal(fmt.Errorf("find a free port: %w", taken))
	return ""
}
