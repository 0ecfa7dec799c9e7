package shelf

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsSetApartComesBackWhole(t *testing.T) {
	s := newSample([]byte("the name is images-00001 and the release is 2026.1, the image is registry/glance:2026.1"))
	for _, text := range []string{
		"", "x", "the name", string(s.bytes),
		"the name is images-99999 and the release is 2026.1, the image is registry/glance:2026.1",
		"registry/glance:2026.1 the name is something else altogether",
		"the name is images-00001 and the release is 2026.1, the image is registry/glance:2026.1 and more",
	} {
		packed := s.apart([]byte(text))
		whole, err := s.whole(packed)
		require.NoError(t, err, text)
		assert.Equal(t, text, string(whole))
	}
	assert.Less(t, len(s.apart([]byte("the name is images-99999 and the release is 2026.1, the image is registry/glance:2026.1"))), 25)
}

func FuzzApart(f *testing.F) {
	f.Add([]byte("a sample of some length"), []byte("another sample of some length"))
	f.Add([]byte(""), []byte("0123456789"))
	f.Fuzz(func(t *testing.T, text, other []byte) {
		s := newSample(text)
		whole, err := s.whole(s.apart(other))
		require.NoError(t, err)
		assert.Equal(t, string(other), string(whole))
		_, _ = s.whole(string(other)) // whatever it is: no panic
	})
}
