package api

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/c5c3/openstack-upgrade/test/drill/schema"
)

type image struct {
	ID              string    `json:"id"`
	Name            string    `json:"name"`
	Status          string    `json:"status"`
	DiskFormat      string    `json:"disk_format,omitempty"`
	ContainerFormat string    `json:"container_format,omitempty"`
	CreatedAt       time.Time `json:"created_at"`
	// Value is what each release keeps in its own column.
	Value    string `json:"value"`
	Checksum string `json:"checksum"`
}

const (
	usualLimit, mostLimit = 25, 1000
	mostBody              = 1 << 20
	longest               = 200
)

func (s *Server) columns() string {
	return "id, name, COALESCE(disk_format, ''), COALESCE(container_format, ''), created_at, checksum, " + s.Release.Column
}

func read(r *http.Request, into any) error {
	raw, err := io.ReadAll(io.LimitReader(r.Body, mostBody))
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "read the request: %w", err)
	}
	return nil
}

func (s *Server) create(r *http.Request) (int, any, error) {
	var asked image
	if err := read(r, &asked); err != nil {
		return 0, nil, err
	}
	made := image{ID: uuid.NewString(), Name: asked.Name, Status: "queued", DiskFormat: asked.DiskFormat, ContainerFormat: asked.ContainerFormat,
		CreatedAt: time.Now().UTC().Truncate(time.Microsecond), Value: asked.Value}
	if made.Value == "" {
		made.Value = rand.Text()
	}
	if err := made.fits(); err != nil {
		return 0, nil, err
	}
	made.Checksum = schema.Sum(made.ID, made.Name, made.Value)
	_, err := s.Pool.ExecContext(r.Context(),
		"INSERT INTO images (id, name, disk_format, container_format, created_at, checksum, "+s.Release.Column+") VALUES (?, ?, ?, ?, ?, ?, ?)",
		made.ID, made.Name, made.DiskFormat, made.ContainerFormat, made.CreatedAt, made.Checksum, s.Release.Encode(made.Value))
	if err != nil {
		return 0, nil, fmt.Errorf("create an image: %w", err)
	}
	return http.StatusCreated, made, nil
}

func (i image) fits() error {
	if len(i.Name) > longest || len(i.Value) > longest || len(i.DiskFormat) > 20 || len(i.ContainerFormat) > 20 {
		return refuse(http.StatusBadRequest, "a name and a value may have %d characters, a format 20", longest)
	}
	return nil
}

func (s *Server) show(r *http.Request) (int, any, error) {
	id := r.PathValue("id")
	found, err := s.scan(s.Pool.QueryRowContext(r.Context(), "SELECT "+s.columns()+" FROM images WHERE id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil, refuse(http.StatusNotFound, "there is no image %.40q", id)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("read image %s: %w", id, err)
	}
	return http.StatusOK, found, nil
}

// scan reads an image; one that does not match its checksum is an error, so that a client of either release notices.
func (s *Server) scan(row interface{ Scan(into ...any) error }) (found image, err error) {
	var stored *string
	found.Status = "queued"
	if err := row.Scan(&found.ID, &found.Name, &found.DiskFormat, &found.ContainerFormat, &found.CreatedAt, &found.Checksum, &stored); err != nil {
		return image{}, err
	}
	found.Value, err = s.Release.Judge(found.ID, found.Name, found.Checksum, stored)
	return found, err
}

func (s *Server) list(r *http.Request) (int, any, error) {
	query := r.URL.Query()
	limit := usualLimit
	if asked := query.Get("limit"); asked != "" {
		n, err := strconv.Atoi(asked)
		if err != nil || n < 1 {
			return 0, nil, refuse(http.StatusBadRequest, "limit=%.40q is no number from 1 on", asked)
		}
		limit = min(n, mostLimit)
	}
	where, args := "id > ?", []any{query.Get("marker")}
	if query.Has("name") {
		where, args = where+" AND name = ?", append(args, query.Get("name"))
	}
	rows, err := s.Pool.QueryContext(r.Context(), "SELECT "+s.columns()+" FROM images WHERE "+where+" ORDER BY id LIMIT ?", append(args, limit)...)
	if err != nil {
		return 0, nil, fmt.Errorf("list images: %w", err)
	}
	defer rows.Close()
	images := []image{}
	for rows.Next() {
		found, err := s.scan(rows)
		if err != nil {
			return 0, nil, fmt.Errorf("list images: %w", err)
		}
		images = append(images, found)
	}
	if err := rows.Err(); err != nil {
		return 0, nil, fmt.Errorf("list images: %w", err)
	}
	page := map[string]any{"images": images, "first": "/v2/images", "schema": "/v2/schemas/images"}
	if len(images) == limit {
		onward := url.Values{"marker": {images[limit-1].ID}, "limit": {strconv.Itoa(limit)}}
		if query.Has("name") {
			onward.Set("name", query.Get("name"))
		}
		page["next"] = "/v2/images?" + onward.Encode()
	}
	return http.StatusOK, page, nil
}

func (s *Server) remove(r *http.Request) (int, any, error) {
	id := r.PathValue("id")
	result, err := s.Pool.ExecContext(r.Context(), "DELETE FROM images WHERE id = ?", id)
	if err != nil {
		return 0, nil, fmt.Errorf("delete image %s: %w", id, err)
	}
	if n, err := result.RowsAffected(); err == nil && n == 0 {
		return 0, nil, refuse(http.StatusNotFound, "there is no image %.40q", id)
	}
	return http.StatusNoContent, nil, nil
}
