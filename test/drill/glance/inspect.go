package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/drill/schema"
)

// inspect looks at the whole database, or gives the word that something waits for.
func (p *program) inspect(words []string) (code int, err error) {
	ctx := context.Background()
	pool, err := schema.Connect(p.how.Connection)
	if err != nil {
		return failed, err
	}
	defer pool.Close()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return failed, fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close()
	switch {
	case len(words) == 1 && words[0] == "verify":
		report, err := schema.Verify(ctx, conn)
		if err != nil {
			return failed, err
		}
		fmt.Fprintln(p.out, report)
		if !report.Good() {
			return failed, fmt.Errorf("the database is wrong: %s", strings.Join(report.Faults, "; "))
		}
		return 0, nil
	case len(words) == 2 && words[0] == "go":
		if _, err := conn.ExecContext(ctx, "INSERT INTO drill_go VALUES (?)", words[1]); err != nil {
			return failed, fmt.Errorf("give the word %s: %w", words[1], err)
		}
		return 0, nil
	}
	return misused, errors.New("usage: drill [--config-dir DIR] verify|go WORD")
}
