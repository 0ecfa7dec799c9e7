package share_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/c5c3/openstack-upgrade/test/faults/share"
)

func TestOnlyTheWholeIsTheWhole(t *testing.T) {
	t.Setenv(share.Much, "")
	assert.False(t, share.Whole())
	t.Setenv(share.Much, "whole")
	assert.True(t, share.Whole())
}

func TestASeedThatIsGivenIsTaken(t *testing.T) {
	t.Setenv(share.Chance, "42")
	assert.Equal(t, uint64(42), share.Seed(t))
}
