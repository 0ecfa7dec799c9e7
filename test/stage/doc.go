// Package stage sets up what a real upgrade needs, on the one-node Kubernetes of test/cluster: cert-manager, both
// product images from their real Dockerfiles, the production overlay as users apply it, a MariaDB, the images of the
// services, and clients that never stop asking. What walks on it is up to the demo and the end-to-end tests.
//
// Every deed can be repeated: it finds its way from wherever the last run stopped. What a user would type is really
// typed, by kubectl.
//
// The two Debian suites whose Glance is used, bookworm (25.1) and trixie (30.0), stand in for two neighbouring
// releases: nobody packages every one. They cross real schema revisions; the release names given to them are the
// stage's own, and their image tags name no release, which the product trusts.
package stage
