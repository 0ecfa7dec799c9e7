package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Schema is the database as one release's tool sees it, over one connection.
type Schema struct {
	Conn    *sql.Conn
	Release *Release
	// Log says one line of progress.
	Log func(format string, args ...any)
	// Ran is told of every statement that a task has behind it.
	Ran func(task string, statements int)
	// RowDelay is how long the migration of one row takes.
	RowDelay time.Duration
	// RefuseTriggers answers for the server that no trigger may be made.
	RefuseTriggers bool
}

// The server's numbers for what is expected to go wrong.
const (
	noSuchTable       = 1146
	triggersUntrusted = 1419
)

// Heads are the revisions that the database is at, two in the middle of an upgrade, none in an empty one.
func (s *Schema) Heads(ctx context.Context) ([]string, error) {
	rows, err := s.Conn.QueryContext(ctx, "SELECT version_num FROM alembic_version ORDER BY version_num")
	if is(err, noSuchTable) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the schema's version: %w", err)
	}
	defer rows.Close()
	var heads []string
	for rows.Next() {
		var head string
		if err := rows.Scan(&head); err != nil {
			return nil, fmt.Errorf("read the schema's version: %w", err)
		}
		heads = append(heads, head)
	}
	return heads, rows.Err()
}

// Need is what a database waits for; its number is the exit code of db check.
type Need int

// Needs of a database.
const (
	Nothing       Need = 0
	NeedsExpand   Need = 3
	NeedsMigrate  Need = 4
	NeedsContract Need = 5
)

// Check looks how far the database is on the way to this release. A newer database than the release knows looks to it
// like one that was never expanded.
func (s *Schema) Check(ctx context.Context) (Need, error) {
	heads, err := s.Heads(ctx)
	switch {
	case err != nil:
		return Nothing, err
	case slices.Contains(heads, s.Release.Contract):
		return Nothing, nil
	case !slices.Contains(heads, s.Release.Expand):
		return NeedsExpand, nil
	}
	pending, err := s.pending(ctx)
	if err != nil {
		return Nothing, err
	}
	if pending > 0 {
		return NeedsMigrate, nil
	}
	return NeedsContract, nil
}

// pending counts the rows that this release cannot read yet.
func (s *Schema) pending(ctx context.Context) (n int, err error) {
	if err := s.Conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM images WHERE "+s.Release.Column+" IS NULL").Scan(&n); err != nil {
		return 0, fmt.Errorf("count the rows to migrate: %w", err)
	}
	return n, nil
}

// located refuses a database that a newer release has been at.
func (s *Schema) located(heads []string) error {
	for _, head := range heads {
		if !slices.ContainsFunc(s.Release.history(), func(r *Release) bool { return head == r.Expand || head == r.Contract }) {
			return fmt.Errorf("can't locate revision identified by '%s'", head)
		}
	}
	return nil
}

// record writes that the database came to one revision and left others.
func (s *Schema) record(ctx context.Context, reached string, left ...string) error {
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
		"DELETE FROM alembic_version WHERE version_num IN ('" + strings.Join(left, "','") + "')",
		"INSERT INTO alembic_version VALUES ('" + reached + "')",
	} {
		if _, err := s.Conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("record revision %s: %w", reached, err)
		}
	}
	s.Log("revision %s is reached", reached)
	return nil
}

// run executes the DDL of a task. What ran before an error stays.
func (s *Schema) run(ctx context.Context, task string, statements []string) error {
	for i, statement := range statements {
		began := time.Now()
		s.Log("run %s", strings.Join(strings.Fields(statement), " "))
		if _, err := s.Conn.ExecContext(ctx, statement); err != nil {
			return err
		}
		s.Log("done in %s", time.Since(began).Round(time.Millisecond))
		if s.Ran != nil {
			s.Ran(task, i+1)
		}
	}
	return nil
}

func is(err error, number uint16) bool {
	var server *mysql.MySQLError
	return errors.As(err, &server) && server.Number == number
}
