module github.com/c5c3/openstack-upgrade

go 1.26.0
