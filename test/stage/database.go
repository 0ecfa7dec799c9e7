package stage

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed mariadb.yaml
var mariadbManifest string

const mariadb = "mariadb"

func (s *Stage) applyDatabaseServer(ctx context.Context) error {
	s.Say("kubectl apply a MariaDB")
	// The password must outlive a repetition: the server took it when it started.
	if err := s.do(ctx, mariadbManifest, "apply", "--server-side", "--filename", "-"); err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: DatabaseNamespace, Name: mariadb},
		StringData: map[string]string{"password": rand.Text()},
	}
	if err := s.Client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the password of the database: %w", err)
	}
	return nil
}

func (s *Stage) awaitDatabaseServer(ctx context.Context) error {
	return s.Await(ctx, "the database server", 3*time.Minute, s.RolledOut(DatabaseNamespace, mariadb))
}

var databaseName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// Database makes an empty database, dropping one of that name, and a user of that name for it. It returns the
// SQLAlchemy URL.
func (s *Stage) Database(ctx context.Context, name string) (url string, err error) {
	if !databaseName.MatchString(name) {
		return "", fmt.Errorf("database name %q: use lower-case letters, digits and underscores", name)
	}
	var secret corev1.Secret
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: DatabaseNamespace, Name: mariadb}, &secret); err != nil {
		return "", fmt.Errorf("get the password of the database: %w", err)
	}
	password := string(secret.Data["password"])
	_, err = s.SQL(ctx, "", strings.ReplaceAll(`
		DROP DATABASE IF EXISTS $n; CREATE DATABASE $n CHARACTER SET utf8mb4;
		CREATE USER IF NOT EXISTS '$n'@'%'; ALTER USER '$n'@'%' IDENTIFIED BY '`+password+`';
		GRANT ALL PRIVILEGES ON $n.* TO '$n'@'%';`, "$n", name))
	if err != nil {
		return "", fmt.Errorf("make database %s: %w", name, err)
	}
	return fmt.Sprintf("mysql+pymysql://%[1]s:%[2]s@%[3]s.%[4]s.svc:3306/%[1]s", name, password, mariadb, DatabaseNamespace), nil
}

// SQL runs statements as the administrator of the server and returns the rows, a line each with tabs between columns.
func (s *Stage) SQL(ctx context.Context, database, statements string) (string, error) {
	args := []string{"-n", DatabaseNamespace, "exec", "--stdin", "deployment/" + mariadb, "--", "mariadb", "--batch", "--skip-column-names"}
	if database != "" {
		args = append(args, database)
	}
	out, err := s.Kubectl(ctx, statements, args...)
	return strings.TrimSpace(out), err
}

// Heads are the schema revisions that a service's migrations have left in its database, in alphabetical order: one in
// steady state, two in the middle of an upgrade.
func (s *Stage) Heads(ctx context.Context, database string) ([]string, error) {
	out, err := s.SQL(ctx, database, "SELECT version_num FROM alembic_version ORDER BY version_num")
	if err != nil {
		return nil, fmt.Errorf("read the heads of database %s: %w", database, err)
	}
	return strings.Fields(out), nil
}
