// Package build makes the objects that tests speak about, so that a test names only what it is about:
//
//	build.Glance("images", build.In(ns), build.Release("2026.1"), build.Tag("2026.1"))
//
// Every object is complete and acceptable as it is: a Glance that no option touches is a fresh install of 2026.1, and
// every pod template passes Pod Security restricted.
package build
