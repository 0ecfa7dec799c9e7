# Runs inside the root file system of the database server.
echo 'mysql:x:64100:64100::/var/lib/mysql:/usr/sbin/nologin' >> /etc/passwd
echo 'mysql:x:64100:' >> /etc/group
mkdir -p /var/lib/mysql /etc/mysql/conf.d
chmod 0755 /var/lib/mysql

# Debian's own settings name paths that a read-only root does not let exist.
rm -f /etc/mysql/mariadb.conf.d/* /etc/mysql/conf.d/*
cat > /etc/mysql/conf.d/cluster.cnf <<'CNF'
[client]
socket = /var/lib/mysql/server.sock
default-character-set = utf8mb4

[mariadbd]
datadir = /var/lib/mysql
socket = /var/lib/mysql/server.sock
pid-file = /var/lib/mysql/server.pid
tmpdir = /tmp
bind-address = *
skip-name-resolve
character-set-server = utf8mb4
collation-server = utf8mb4_general_ci
log_bin_trust_function_creators = 1
max_connections = 400
innodb_buffer_pool_size = 128M
innodb_log_file_size = 32M
# The data live as long as the pod: losing the last second to a power cut is fine.
innodb_flush_log_at_trx_commit = 2
innodb_doublewrite = 0
CNF
rm -rf /var/cache/debconf/* /var/lib/dpkg/info/*.md5sums /var/lib/dpkg/*-old /etc/apt/sources.list /etc/apt/sources.list.d/*
