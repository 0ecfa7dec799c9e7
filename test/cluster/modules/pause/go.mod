module github.com/c5c3/openstack-upgrade/test/cluster/modules/pause

go 1.26.0
