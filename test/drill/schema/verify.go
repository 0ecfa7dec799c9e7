package schema

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Report is what a look at every row found.
type Report struct {
	Checked int `json:"checked"`
	Wrong   int `json:"wrong"`
	// Unmigrated rows are readable in the old column alone, which is right until contract.
	Unmigrated int      `json:"unmigrated"`
	Columns    []string `json:"columns"`
	// Faults tells of the first wrong rows.
	Faults []string `json:"faults,omitempty"`
	// Runs are the commands that changed the schema, and Overlapping how many of them began while another one ran.
	Runs        []Run `json:"runs,omitempty"`
	Overlapping int   `json:"overlapping"`
}

const keptFaults = 20

func (r Report) String() string {
	return fmt.Sprintf("rows checked %d, wrong %d, unmigrated %d, through %s; runs %d, overlapping %d",
		r.Checked, r.Wrong, r.Unmigrated, strings.Join(r.Columns, " and "), len(r.Runs), r.Overlapping)
}

// Good tells whether nothing is wrong.
func (r Report) Good() bool { return r.Wrong == 0 && r.Overlapping == 0 }

// Verify reads every row through every column that there is.
func Verify(ctx context.Context, conn *sql.Conn) (Report, error) {
	var report Report
	releases, err := present(ctx, conn)
	if err != nil {
		return report, err
	}
	for _, r := range releases {
		report.Columns = append(report.Columns, r.Column)
	}
	rows, err := conn.QueryContext(ctx, "SELECT id, name, checksum, "+strings.Join(report.Columns, ", ")+" FROM images")
	if err != nil {
		return report, fmt.Errorf("read every image: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, name, checksum string
		values := make([]*string, len(releases))
		into := []any{&id, &name, &checksum}
		for i := range values {
			into = append(into, &values[i])
		}
		if err := rows.Scan(into...); err != nil {
			return report, fmt.Errorf("read every image: %w", err)
		}
		report.enter(releases, id, name, checksum, values)
	}
	if err := rows.Err(); err != nil {
		return report, fmt.Errorf("read every image: %w", err)
	}
	report.Runs, err = runs(ctx, conn)
	for _, run := range report.Runs {
		if run.Overlapped {
			report.Overlapping++
		}
	}
	return report, err
}

// enter judges one row. The newest column alone may be empty, as long as there is an older one.
func (r *Report) enter(releases []*Release, id, name, checksum string, values []*string) {
	r.Checked++
	last := len(values) - 1
	if last > 0 && values[last] == nil {
		r.Unmigrated++
		values = values[:last]
	}
	for i, stored := range values {
		if _, err := releases[i].Judge(id, name, checksum, stored); err != nil {
			r.Wrong++
			if len(r.Faults) < keptFaults {
				r.Faults = append(r.Faults, err.Error())
			}
			return
		}
	}
}

// present are the releases whose column exists.
func present(ctx context.Context, conn *sql.Conn) ([]*Release, error) {
	rows, err := conn.QueryContext(ctx, "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'images'")
	if err != nil {
		return nil, fmt.Errorf("list the columns of images: %w", err)
	}
	defer rows.Close()
	var columns []string
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			return nil, fmt.Errorf("list the columns of images: %w", err)
		}
		columns = append(columns, column)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list the columns of images: %w", err)
	}
	newest, err := Find(Names[len(Names)-1])
	if err != nil {
		return nil, err
	}
	var found []*Release
	for _, r := range newest.history() {
		if slices.Contains(columns, r.Column) {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there are no images to read: run glance-manage db sync first")
	}
	return found, nil
}
