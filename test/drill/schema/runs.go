package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Run is one start of a command that may change the schema. A run without an end was killed or is under way.
type Run struct {
	ID      int64      `json:"id"`
	Task    string     `json:"task"`
	Release string     `json:"release"`
	Tag     string     `json:"tag"`
	Host    string     `json:"host"`
	Began   time.Time  `json:"began"`
	Ended   *time.Time `json:"ended,omitempty"`
	Outcome string     `json:"outcome,omitempty"`
	// Overlapped tells that another one held the database when this one began.
	Overlapped bool `json:"overlapped,omitempty"`
}

// Begin notes a run, and whether it is the only one. Each run holds a lock that belongs to its connection: the server
// keeps it for as long as it works on a statement, even of a process that is gone already. It hinders nobody, as with
// the real tools.
func Begin(ctx context.Context, conn *sql.Conn, run Run) (Run, error) {
	for _, statement := range []string{
		`CREATE TABLE IF NOT EXISTS drill_runs (
			id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
			task VARCHAR(20) NOT NULL, release_name VARCHAR(20) NOT NULL, tag VARCHAR(128) NOT NULL, host VARCHAR(255) NOT NULL,
			began DATETIME(6) NOT NULL, ended DATETIME(6) NULL, outcome VARCHAR(255) NULL, overlapped BOOLEAN NOT NULL DEFAULT FALSE
		) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4`,
		"CREATE TABLE IF NOT EXISTS drill_go (word VARCHAR(64) NOT NULL) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return run, fmt.Errorf("note the run: %w", err)
		}
	}
	result, err := conn.ExecContext(ctx, "INSERT INTO drill_runs (task, release_name, tag, host, began) VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6))",
		run.Task, run.Release, run.Tag, run.Host)
	if err == nil {
		run.ID, err = result.LastInsertId()
	}
	if err != nil {
		return run, fmt.Errorf("note the run: %w", err)
	}
	var others int
	if _, err := conn.ExecContext(ctx, "DO GET_LOCK(CONCAT('drill/', DATABASE(), '/', ?), 0)", run.ID); err != nil {
		return run, fmt.Errorf("note the run: %w", err)
	}
	err = conn.QueryRowContext(ctx, `SELECT COUNT(*) FROM drill_runs
		WHERE id <> ? AND IS_USED_LOCK(CONCAT('drill/', DATABASE(), '/', id)) IS NOT NULL`, run.ID).Scan(&others)
	if err == nil && others > 0 {
		run.Overlapped = true
		_, err = conn.ExecContext(ctx, "UPDATE drill_runs SET overlapped = TRUE WHERE id = ?", run.ID)
	}
	if err != nil {
		return run, fmt.Errorf("note the run: %w", err)
	}
	return run, nil
}

// Earlier counts the runs of the same task and image before this one.
func Earlier(ctx context.Context, conn *sql.Conn, run Run) (n int, err error) {
	err = conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM drill_runs WHERE task = ? AND tag = ? AND id < ?", run.Task, run.Tag, run.ID).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count the runs before: %w", err)
	}
	return n, nil
}

// End notes how a run came out; the lock ends with the connection.
func End(ctx context.Context, conn *sql.Conn, run Run, failure error) error {
	outcome := "done"
	if failure != nil {
		outcome = fmt.Sprintf("%.255s", failure.Error())
	}
	if _, err := conn.ExecContext(ctx, "UPDATE drill_runs SET ended = UTC_TIMESTAMP(6), outcome = ? WHERE id = ?", outcome, run.ID); err != nil {
		return fmt.Errorf("note the end of the run: %w", err)
	}
	return nil
}

func runs(ctx context.Context, conn *sql.Conn) ([]Run, error) {
	rows, err := conn.QueryContext(ctx, "SELECT id, task, release_name, tag, host, began, ended, COALESCE(outcome, ''), overlapped FROM drill_runs ORDER BY id")
	if is(err, noSuchTable) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	defer rows.Close()
	var all []Run
	for rows.Next() {
		var r Run
		if err := rows.Scan(&r.ID, &r.Task, &r.Release, &r.Tag, &r.Host, &r.Began, &r.Ended, &r.Outcome, &r.Overlapped); err != nil {
			return nil, fmt.Errorf("list the runs: %w", err)
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// Querier is a connection or a pool of them.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Await waits until somebody gives the word, and takes it: a word lets one waiter go.
func Await(ctx context.Context, db Querier, word string, log func(format string, args ...any)) error {
	began, said := time.Now(), time.Time{}
	for {
		result, err := db.ExecContext(ctx, "DELETE FROM drill_go WHERE word = ? LIMIT 1", word)
		if err != nil {
			return fmt.Errorf("wait for the word %s: %w", word, err)
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
		if time.Since(said) > sayEvery {
			log("wait since %s for the word %s: INSERT INTO drill_go VALUES ('%s')", time.Since(began).Round(time.Second), word, word)
			said = time.Now()
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("wait for the word %s", word), context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// LoadMetadefs loads the definitions of this release and leaves those alone that are there.
func (s *Schema) LoadMetadefs(ctx context.Context) error {
	for _, r := range s.Release.history() {
		result, err := s.Conn.ExecContext(ctx, "INSERT IGNORE INTO metadefs VALUES (?, ?)", "Drill::"+r.suffix(), s.Release.Name)
		if err != nil {
			return fmt.Errorf("load the metadata definitions: %w", err)
		}
		if n, _ := result.RowsAffected(); n == 0 {
			s.Log("namespace Drill::%s is there already; skipped", r.suffix())
			continue
		}
		s.Log("namespace Drill::%s loaded", r.suffix())
	}
	return nil
}
