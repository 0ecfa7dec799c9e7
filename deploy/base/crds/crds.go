// Package crds hands the generated CustomResourceDefinitions to programs that
// judge by them without a cluster.
package crds

import "embed"

// Files are the definitions, one a file.
//
//go:embed *.yaml
var Files embed.FS
