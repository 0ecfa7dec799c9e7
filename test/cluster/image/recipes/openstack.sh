# Runs inside the root file system of an OpenStack service; $service is its name.

# A generic launch command says uwsgi. Debian's program loads the Python plugin by the name it is started under.
rm -f /usr/bin/uwsgi
printf '#!/bin/sh\nexec /usr/bin/uwsgi_python3 "$@"\n' > /usr/bin/uwsgi
chmod 0755 /usr/bin/uwsgi

# Any user may read the configuration, and the database is named by the environment alone.
chmod -R a+rX,u+w "/etc/$service"
sed -i -E 's/^(connection|sqlite_db)[[:space:]]*=/#&/' /etc/"$service"/*.conf

# A pod mounts these; they exist so that a read-only root needs no mkdir.
mkdir -p "/etc/$service/$service-api.conf.d" "/etc/$service/$service.conf.d" "/var/lib/$service" "/var/log/$service"
chmod 0755 "/var/lib/$service" "/var/log/$service"

# Nothing installs packages here again.
rm -rf /var/cache/debconf/* /var/lib/dpkg/info/*.md5sums /var/lib/dpkg/*-old /etc/apt/sources.list /etc/apt/sources.list.d/*
