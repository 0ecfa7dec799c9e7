#!/bin/sh
# Makes the data directory on the first start, lets DATABASES (names, space separated; default glance) exist with a user
# of the same name and DATABASE_PASSWORD each, and becomes the server. The user "mysql" of this image administers over
# the socket without a password: `mariadb -e 'select version()'` in the container is enough.
set -eu
fail() { echo "serve-databases: $*" >&2; exit 1; }

data=/var/lib/mysql
[ -w "$data" ] || fail "cannot write to $data as user $(id -u); mount a volume there that this user may write to"
[ -w /tmp ] || fail "cannot write to /tmp as user $(id -u); mount a volume there that this user may write to"
[ -n "${DATABASE_PASSWORD:-}" ] || fail "DATABASE_PASSWORD is empty; set the password that the databases' users shall have"

if [ ! -d "$data/mysql" ]; then
    echo "serve-databases: making the data directory"
    rm -rf "$data/.new" && mkdir "$data/.new"
    # Made aside and moved, so that a start that was cut short is not taken for a finished one.
    # A pod's host name need not resolve: --force.
    mariadb-install-db --no-defaults --force --datadir="$data/.new" --auth-root-authentication-method=socket \
        --auth-root-socket-user=mysql --skip-test-db --innodb-log-file-size=32M >/tmp/install-db.log 2>&1 ||
        { cat /tmp/install-db.log >&2; fail "making the data directory failed"; }
    # The directory that marks a finished one comes last.
    find "$data/.new" -mindepth 1 -maxdepth 1 ! -name mysql -exec mv -f {} "$data/" \;
    mv "$data/.new/mysql" "$data/mysql" && rmdir "$data/.new"
fi

password=$(printf %s "$DATABASE_PASSWORD" | sed "s/[\\\\']/\\\\&/g")
statements=/tmp/databases.sql
: >"$statements" && chmod 0600 "$statements"
for name in ${DATABASES:-glance}; do
    case $name in
    *[!a-z0-9_]* | mysql | sys) fail "DATABASES names \"$name\"; use lower-case letters, digits and underscores" ;;
    esac
    # One statement a line: the server reads its init file that way.
    cat >>"$statements" <<SQL
CREATE DATABASE IF NOT EXISTS $name CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS '$name'@'%';
ALTER USER '$name'@'%' IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON $name.* TO '$name'@'%';
SQL
done

echo "serve-databases: starting the server for: ${DATABASES:-glance}"
exec mariadbd --init-file="$statements" "$@"
