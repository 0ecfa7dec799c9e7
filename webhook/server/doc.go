// Package server stands between the network and the judge: TLS with a pair
// that is followed on disk, a bounded and timed body, health that tells whether
// an API server could really be answered, metrics, and an end in which no call
// is lost.
//
// It starts even when no certificate is there yet, and says so in readiness:
// a process that exits instead is restarted with growing pauses, and is late
// when the certificate comes.
package server
