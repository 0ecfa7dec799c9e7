package mariadb

import (
	"context"
	"fmt"
	"net/url"
	"strings"
)

// Database makes an empty database and a user of the same name who has all rights on it but those that are withheld.
// It returns the SQLAlchemy URL.
func (s *Server) Database(ctx context.Context, name string, withheld ...string) (connection string, err error) {
	statements := []string{
		"CREATE DATABASE $n CHARACTER SET utf8mb4",
		"CREATE USER '$n'@'%' IDENTIFIED BY 'secret'",
		"GRANT ALL PRIVILEGES ON $n.* TO '$n'@'%'",
	}
	if len(withheld) > 0 {
		statements = append(statements, "REVOKE "+strings.Join(withheld, ", ")+" ON $n.* FROM '$n'@'%'")
	}
	for _, statement := range statements {
		if _, err := s.Root.ExecContext(ctx, strings.ReplaceAll(statement, "$n", name)); err != nil {
			return "", fmt.Errorf("make database %s: %w", name, err)
		}
	}
	return fmt.Sprintf("mysql+pymysql://%[1]s:secret@localhost/%[1]s?unix_socket=%[2]s", name, url.QueryEscape(s.socket)), nil
}
