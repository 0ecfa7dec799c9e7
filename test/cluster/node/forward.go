package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// forward carries every connection that the host's socket accepts to the API server.
func forward(ctx context.Context, listener net.Listener) error {
	for {
		outside, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accept a connection for the API server: %w", err)
		}
		go func() {
			defer outside.Close()
			inside, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(Address, APIPort))
			if err != nil {
				return
			}
			defer inside.Close()
			join(outside, inside)
		}()
	}
}

// join copies both ways until both directions have ended; the end of one is passed on as such.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			to, from := pair[0], pair[1]
			// Either side may break off at any time: then the other is told by the half-close below.
			_, _ = io.Copy(to, from)
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	both.Wait()
}
