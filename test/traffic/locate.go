package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// lookups is how often a name is looked up before it counts as unknown, a second apart.
const lookups = 30

// located is a URL with the address in place of the name. The name is looked up once: what is measured is the service,
// and a name server that is slow on a busy node is no part of it.
func located(ctx context.Context, text string) (string, error) {
	target, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("--url=%s: %w", text, err)
	}
	if net.ParseIP(target.Hostname()) != nil {
		return text, nil
	}
	var found []string
	for range lookups {
		if found, err = net.DefaultResolver.LookupHost(ctx, target.Hostname()); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Second):
		}
	}
	if err != nil {
		return "", fmt.Errorf("look up %s: %w", target.Hostname(), err)
	}
	target.Host = strings.TrimSuffix(net.JoinHostPort(found[0], target.Port()), ":")
	return target.String(), nil
}
