// Package drill stands in for a Glance whose contract really removes what the old release reads.
//
// Glance has had no such revision for years: with the real one, contract may run at any moment and nothing fails, so
// a wrong order would go unseen. The drill is small and everything that matters in it is real: a schema on MariaDB
// with non-transactional DDL and online triggers, the command line, exit codes and order checks of glance-manage, and
// an API of which each release knows only its own column. Its images are tagged as releases are, so image and release
// must be in lockstep, and they start with the same command lines as Glance's do.
//
// Every image that it keeps carries a checksum over what its client wrote. A read that finds it wrong is answered with
// a failure, through either release; GET /drill/verify, or "drill verify" in a container, looks at every row and at
// every column, and tells whether two commands ever worked on the database at once.
//
// The package makes the images. Its parts are settings (what it can be told to do wrong), schema (the migrations), api
// (the server), glance (the program) and mariadb (a server for tests on this machine).
package drill
