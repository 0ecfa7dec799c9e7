package walks

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEditHasMetSomethingIfItWasAnsweredAsItWasMeant(t *testing.T) {
	none, taken, refused := answer{}, answer{taken: true}, answer{refused: true}
	for deed, holds := range map[Deed][]bool{
		Upgrade: {false, true, false}, Patch: {false, true, false}, Revert: {false, true, false},
		Skip: {false, true, true}, Garbage: {false, true, true}, Mismatch: {false, true, true},
	} {
		require.Equal(t, holds, []bool{meant(deed, none), meant(deed, taken), meant(deed, refused)}, "%s", deed)
	}
}
