// Package image makes the container images of the one-node cluster without a registry, all as docker-archive tars that
// `ctr images import` reads. Real software comes from Debian: Ensure bootstraps a root file system of its packages once
// and keeps the image under the user's cache directory, named by the hash of its recipe. Our own software comes from
// its Dockerfiles: Build runs them for real, with local images in the place of those their ARGs name. FromBinary packs
// one static Go program, for the helpers of a test.
//
// The two Debian suites stand in for two neighbouring releases of OpenStack: bookworm carries Glance 25.1, trixie
// Glance 30.0. Which releases a test declares them to be is the test's business; the tags are the suites' names.
package image

// Log says one line of progress.
type Log = func(format string, args ...any)
