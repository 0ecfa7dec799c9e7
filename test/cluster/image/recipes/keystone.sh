# Runs before openstack.sh: the library brings no configuration, and an empty file leaves every setting at its default.
mkdir -p /etc/keystone /etc/keystone/fernet-keys /etc/keystone/credential-keys
echo '# Settings come from keystone.conf.d and from the environment.' > /etc/keystone/keystone.conf
# The database driver asks for the name of its user, and on trixie it fails without one.
echo 'keystone:x:64101:64101::/var/lib/keystone:/usr/sbin/nologin' >> /etc/passwd
echo 'keystone:x:64101:' >> /etc/group
