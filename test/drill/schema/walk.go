package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Expand adds what this release needs and takes nothing away. Online, old pods go on writing meanwhile.
func (s *Schema) Expand(ctx context.Context, online bool) error {
	heads, err := s.Heads(ctx)
	switch {
	case err != nil:
		return err
	case slices.Contains(heads, s.Release.Contract):
		s.Log("the database is up to date; nothing to expand")
		return nil
	case slices.Contains(heads, s.Release.Expand):
		s.Log("expansion is up to date")
		return nil
	}
	if err := s.located(heads); err != nil {
		return err
	}
	reached := func(r *Release) bool { return slices.Contains(heads, r.Expand) || slices.Contains(heads, r.Contract) }
	for _, r := range s.Release.since(reached) {
		if online && r.Before != nil {
			if err := s.mayMakeTriggers(ctx); err != nil {
				return fmt.Errorf("expand to %s: %w", r.Name, err)
			}
		}
		if err := s.run(ctx, "expand", r.expansion(online)); err != nil {
			return fmt.Errorf("expand to %s: %w", r.Name, err)
		}
		var left []string
		if r.Before != nil {
			left = []string{r.Before.Expand}
		}
		if err := s.record(ctx, r.Expand, left...); err != nil {
			return err
		}
	}
	return nil
}

// mayMakeTriggers finds out before anything is half done.
func (s *Schema) mayMakeTriggers(ctx context.Context) error {
	if s.RefuseTriggers {
		return &mysql.MySQLError{Number: triggersUntrusted, SQLState: [5]byte{'H', 'Y', '0', '0', '0'},
			Message: "You do not have the SUPER privilege and binary logging is enabled (you *might* want to use the less safe log_bin_trust_function_creators variable)"}
	}
	for _, statement := range []string{
		"CREATE OR REPLACE TRIGGER images_probe BEFORE DELETE ON images FOR EACH ROW SET @probe = 1",
		"DROP TRIGGER images_probe",
	} {
		if _, err := s.Conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Migrate rewrites the rows that only the release before can read.
func (s *Schema) Migrate(ctx context.Context) error {
	heads, err := s.Heads(ctx)
	switch {
	case err != nil:
		return err
	case slices.Contains(heads, s.Release.Contract):
		s.Log("the database is up to date; nothing to migrate")
		return nil
	case !slices.Contains(heads, s.Release.Expand):
		return errors.New("migrate did not run: the database must be expanded first, with glance-manage db expand")
	}
	pending, err := s.pending(ctx)
	if err != nil {
		return err
	}
	if pending == 0 {
		s.Log("migration is up to date")
		return nil
	}
	migrated, err := s.rewrite(ctx, pending)
	if err != nil {
		return fmt.Errorf("migrate to %s: %w", s.Release.Name, err)
	}
	s.Log("migrated %d rows", migrated)
	return nil
}

const (
	batch = 100
	// sayEvery is how often a long task says how far it is.
	sayEvery = 10 * time.Second
)

func (s *Schema) rewrite(ctx context.Context, pending int) (migrated int, err error) {
	own, said := s.Release.Column, time.Now()
	fill := fmt.Sprintf("UPDATE images SET %s = %s WHERE id = ? AND %s IS NULL", own, s.Release.from(s.Release.Before, s.Release.Before.Column), own)
	for last := ""; ; {
		ids, err := s.unreadable(ctx, last)
		if err != nil || len(ids) == 0 {
			return migrated, err
		}
		for _, id := range ids {
			select {
			case <-ctx.Done():
				return migrated, ctx.Err()
			case <-time.After(s.RowDelay):
			}
			if _, err := s.Conn.ExecContext(ctx, fill, id); err != nil {
				return migrated, fmt.Errorf("row %s: %w", id, err)
			}
			migrated++
			if time.Since(said) > sayEvery {
				s.Log("migrated %d of %d rows", migrated, pending)
				said = time.Now()
			}
		}
		last = ids[len(ids)-1]
	}
}

func (s *Schema) unreadable(ctx context.Context, after string) (ids []string, err error) {
	rows, err := s.Conn.QueryContext(ctx, "SELECT id FROM images WHERE "+s.Release.Column+" IS NULL AND id > ? ORDER BY id LIMIT ?", after, batch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Contract takes away what only the release before has used.
func (s *Schema) Contract(ctx context.Context, online bool) error {
	heads, err := s.Heads(ctx)
	switch {
	case err != nil:
		return err
	case slices.Contains(heads, s.Release.Contract):
		s.Log("the database is up to date; nothing to contract")
		return nil
	case !slices.Contains(heads, s.Release.Expand):
		return errors.New("contract did not run: the database must be expanded first, with glance-manage db expand")
	}
	pending, err := s.pending(ctx)
	if err != nil {
		return err
	}
	if pending > 0 {
		return fmt.Errorf("contract did not run: %d rows must be migrated first, with glance-manage db migrate", pending)
	}
	if err := s.located(heads); err != nil {
		return err
	}
	left := []string{s.Release.Expand}
	for _, r := range s.Release.history() {
		left = append(left, r.Contract)
	}
	for _, r := range s.Release.since(func(r *Release) bool { return slices.Contains(heads, r.Contract) }) {
		if err := s.run(ctx, "contract", r.contraction(online)); err != nil {
			return fmt.Errorf("contract to %s: %w", r.Name, err)
		}
	}
	return s.record(ctx, s.Release.Contract, left...)
}

// Sync does it all in one pass, for a database that nobody else uses.
func (s *Schema) Sync(ctx context.Context) error {
	heads, err := s.Heads(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(heads, s.Release.Contract) {
		s.Log("the database is up to date; nothing to sync")
		return nil
	}
	if err := s.Expand(ctx, false); err != nil {
		return err
	}
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	return s.Contract(ctx, false)
}
