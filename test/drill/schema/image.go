package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Sum is the checksum of an image. It is made of what a client wrote and stays the same through every column, so that
// a value that one release garbles is wrong in the eyes of the other.
func Sum(id, name, value string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{id, name, value}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// Judge reads the value of an image as a release stored it, and says what is wrong with it if anything is.
func (r *Release) Judge(id, name, checksum string, stored *string) (value string, err error) {
	if stored == nil {
		return "", fmt.Errorf("image %s is wrong: %s is empty", id, r.Column)
	}
	value, ours := r.Decode(*stored)
	switch {
	case !ours:
		return "", fmt.Errorf("image %s is wrong: %s holds %.40q, which %s cannot read", id, r.Column, *stored, r.Name)
	case Sum(id, name, value) != checksum:
		return "", fmt.Errorf("image %s is wrong: %s does not match its checksum", id, r.Column)
	}
	return value, nil
}
