package shelf

import (
	"encoding/binary"
	"errors"
)

const (
	// window is how many equal bytes are worth a reference to the sample.
	window = 8
	// copied marks a reference; what is not marked are bytes of their own.
	copied = 1
)

var errBroken = errors.New("packed object is broken")

// sample is what others are set apart from.
type sample struct {
	bytes []byte
	// json tells how it and what refers to it is encoded.
	json bool
	// at is where each sequence of bytes begins.
	at map[uint64]int32
}

func newSample(text []byte) *sample {
	s := &sample{bytes: text, at: make(map[uint64]int32, len(text))}
	for i := len(text) - window; i >= 0; i-- {
		s.at[binary.LittleEndian.Uint64(text[i:])] = int32(i)
	}
	return s
}

// apart writes a text as references to the sample and what lies between them.
func (s *sample) apart(text []byte) string {
	var out []byte
	own, expected := 0, 0
	flush := func(end int) {
		if end > own {
			out = binary.AppendUvarint(out, uint64(end-own)<<1)
			out = append(out, text[own:end]...)
		}
	}
	for i := 0; i+window <= len(text); {
		at, length := s.longest(text[i:], expected)
		if length < window {
			i++
			expected++
			continue
		}
		flush(i)
		out = binary.AppendUvarint(out, uint64(length)<<1|copied)
		out = binary.AppendUvarint(out, uint64(at))
		i += length
		own, expected = i, at+length
	}
	flush(len(text))
	return string(out)
}

// longest finds the text in the sample: where it is expected, or where its beginning was first met.
func (s *sample) longest(text []byte, expected int) (at, length int) {
	if expected < len(s.bytes) {
		if length = equal(s.bytes[expected:], text); length >= window {
			return expected, length
		}
	}
	first, known := s.at[binary.LittleEndian.Uint64(text)]
	if !known {
		return 0, 0
	}
	return int(first), equal(s.bytes[first:], text)
}

func equal(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// whole is the text again.
func (s *sample) whole(body string) ([]byte, error) {
	packed := []byte(body)
	text := make([]byte, 0, len(s.bytes)+len(packed))
	for len(packed) > 0 {
		word, n := binary.Uvarint(packed)
		if n <= 0 {
			return nil, errBroken
		}
		packed = packed[n:]
		from, at := packed, uint64(0)
		if word&copied != 0 {
			if at, n = binary.Uvarint(packed); n <= 0 {
				return nil, errBroken
			}
			packed, from = packed[n:], s.bytes
		}
		length := word >> 1
		if at > uint64(len(from)) || length > uint64(len(from))-at {
			return nil, errBroken
		}
		text = append(text, from[at:at+length]...)
		if word&copied == 0 {
			packed = packed[length:]
		}
	}
	return text, nil
}
