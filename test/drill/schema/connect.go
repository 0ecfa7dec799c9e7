package schema

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Connect opens a pool on an SQLAlchemy URL. Nothing is asked of the server yet.
func Connect(connection string) (*sql.DB, error) {
	config, err := understand(connection)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(16)
	pool.SetMaxIdleConns(16)
	pool.SetConnMaxLifetime(5 * time.Minute)
	return pool, nil
}

const example = "mysql+pymysql://user:password@host:3306/database"

// understand reads the URL. What goes wrong is told without it: it holds a password.
func understand(connection string) (*mysql.Config, error) {
	if connection == "" {
		return nil, fmt.Errorf("there is no database connection; set OS_DATABASE__CONNECTION to something like %s", example)
	}
	u, err := url.Parse(connection)
	if err != nil {
		return nil, fmt.Errorf("the database connection is no URL; give something like %s", example)
	}
	if engine, _, _ := strings.Cut(u.Scheme, "+"); engine != "mysql" && engine != "mariadb" {
		return nil, fmt.Errorf("database engine %q is not supported, only MySQL and MariaDB are; give something like %s", u.Scheme, example)
	}
	name := strings.TrimPrefix(u.Path, "/")
	if u.User == nil || name == "" {
		return nil, errors.New("the database connection lacks a user or a database; give something like " + example)
	}
	config := mysql.NewConfig()
	config.User, config.DBName = u.User.Username(), name
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr = "tcp", u.Host
	if u.Port() == "" {
		config.Addr = u.Hostname() + ":3306"
	}
	if socket := u.Query().Get("unix_socket"); socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	config.Timeout = 10 * time.Second
	config.ParseTime = true
	// One round trip, and no prepared statement that a change of the table makes stale.
	config.InterpolateParams = true
	return config, nil
}
