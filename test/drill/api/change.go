package api

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"

	"github.com/c5c3/openstack-upgrade/test/drill/schema"
)

// change replaces the name or the value, in the words of a JSON patch. The row is locked from the read to the write.
func (s *Server) change(r *http.Request) (int, any, error) {
	var patch []struct{ Op, Path, Value string }
	if err := read(r, &patch); err != nil {
		return 0, nil, err
	}
	id := r.PathValue("id")
	transaction, err := s.Pool.BeginTx(r.Context(), nil)
	if err != nil {
		return 0, nil, fmt.Errorf("change image %s: %w", id, err)
	}
	defer transaction.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	found, err := s.scan(transaction.QueryRowContext(r.Context(), "SELECT "+s.columns()+" FROM images WHERE id = ? FOR UPDATE", id))
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil, refuse(http.StatusNotFound, "there is no image %.40q", id)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("change image %s: %w", id, err)
	}
	for _, step := range patch {
		switch step.Op + " " + step.Path {
		case "replace /name":
			found.Name = step.Value
		case "replace /value":
			found.Value = step.Value
		default:
			return 0, nil, refuse(http.StatusBadRequest, "%.40q %.40q is not supported; replace /name or /value", step.Op, step.Path)
		}
	}
	if err := found.fits(); err != nil {
		return 0, nil, err
	}
	found.Checksum = schema.Sum(found.ID, found.Name, found.Value)
	_, err = transaction.ExecContext(r.Context(), "UPDATE images SET name = ?, checksum = ?, "+s.Release.Column+" = ? WHERE id = ?",
		found.Name, found.Checksum, s.Release.Encode(found.Value), id)
	if err == nil {
		err = transaction.Commit()
	}
	if err != nil {
		return 0, nil, fmt.Errorf("change image %s: %w", id, err)
	}
	return http.StatusOK, found, nil
}
