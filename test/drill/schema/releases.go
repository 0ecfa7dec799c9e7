package schema

import (
	"fmt"
	"strings"
)

// Release is what the migrations of one release know.
type Release struct {
	Name string
	// Expand and Contract are the heads that its branches come to.
	Expand, Contract string
	// Column is the only one that it reads and writes a value in.
	Column string
	// Before is the release that this one is upgraded from; the first has none.
	Before *Release
}

// Names are all releases, in their order.
var Names = []string{"2026.1", "2026.2", "2027.1"}

// Find returns the release of that name.
func Find(name string) (*Release, error) {
	var before *Release
	for _, each := range Names {
		id := strings.ReplaceAll(each, ".", "_")
		r := &Release{Name: each, Expand: id + "_expand01", Contract: id + "_contract01", Column: "value_" + id, Before: before}
		if each == name {
			return r, nil
		}
		before = r
	}
	return nil, fmt.Errorf("release %q is none of %s", name, strings.Join(Names, ", "))
}

// history is this release and all before it, the first one first.
func (r *Release) history() []*Release {
	if r == nil {
		return nil
	}
	return append(r.Before.history(), r)
}

// since is the history after the last release for which reached is true.
func (r *Release) since(reached func(*Release) bool) []*Release {
	all := r.history()
	for i := len(all) - 1; i >= 0; i-- {
		if reached(all[i]) {
			return all[i+1:]
		}
	}
	return all
}

// Encode writes a value the way this release stores it.
func (r *Release) Encode(value string) string { return r.mark() + value }

// Decode reads what Encode wrote; false if another release's hand wrote it.
func (r *Release) Decode(stored string) (string, bool) { return strings.CutPrefix(stored, r.mark()) }

func (r *Release) mark() string { return r.Name + ":" }

// from is the SQL that rewrites what an expression of another release holds.
func (r *Release) from(other *Release, expression string) string {
	return fmt.Sprintf("CONCAT('%s', SUBSTRING(%s, %d))", r.mark(), expression, len(other.mark())+1)
}

func (r *Release) insertTrigger() string { return "images_insert_" + r.suffix() }
func (r *Release) updateTrigger() string { return "images_update_" + r.suffix() }
func (r *Release) suffix() string        { return strings.ReplaceAll(r.Name, ".", "_") }

// expansion is the DDL of expand, a statement after the other. The two columns are kept in step by triggers as long as
// old and new pods may write.
func (r *Release) expansion(online bool) []string {
	if r.Before == nil {
		return []string{
			`CREATE TABLE images (
				id CHAR(36) NOT NULL PRIMARY KEY,
				name VARCHAR(255) NOT NULL,
				disk_format VARCHAR(20), container_format VARCHAR(20),
				created_at DATETIME(6) NOT NULL,
				checksum CHAR(64) NOT NULL,
				` + r.Column + ` VARCHAR(255) NULL,
				KEY images_name (name)
			) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4`,
			`CREATE TABLE metadefs (
				namespace VARCHAR(80) NOT NULL PRIMARY KEY, loaded_by VARCHAR(20) NOT NULL
			) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4`,
		}
	}
	statements := []string{"ALTER TABLE images ADD COLUMN " + r.Column + " VARCHAR(255) NULL"}
	if online {
		statements = append(statements, r.triggers()...)
	}
	return statements
}

func (r *Release) triggers() []string {
	old, own := r.Before.Column, r.Column
	fill := fmt.Sprintf("SET NEW.%s = %s", own, r.from(r.Before, "NEW."+old))
	back := fmt.Sprintf("SET NEW.%s = %s", old, r.Before.from(r, "NEW."+own))
	return []string{
		fmt.Sprintf("CREATE TRIGGER %s BEFORE INSERT ON images FOR EACH ROW IF NEW.%s IS NULL THEN %s; ELSE %s; END IF",
			r.insertTrigger(), own, fill, back),
		fmt.Sprintf("CREATE TRIGGER %s BEFORE UPDATE ON images FOR EACH ROW IF NOT (NEW.%s <=> OLD.%s) THEN %s; ELSEIF NOT (NEW.%s <=> OLD.%s) THEN %s; END IF",
			r.updateTrigger(), old, old, fill, own, own, back),
	}
}

// contraction is the DDL of contract. Offline nobody looks after the triggers.
func (r *Release) contraction(online bool) []string {
	if r.Before == nil {
		return nil
	}
	var statements []string
	if online {
		statements = append(statements, "DROP TRIGGER IF EXISTS "+r.insertTrigger(), "DROP TRIGGER IF EXISTS "+r.updateTrigger())
	}
	return append(statements, "ALTER TABLE images DROP COLUMN "+r.Before.Column)
}
