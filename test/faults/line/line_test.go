package line

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/faults/share"
)

func TestRowsMakeOneTableAndAreCollected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	t.Setenv(share.Collected, path)
	first := Result{Name: "crash before each write, Glance upgrade", Plans: 34, Passed: 33, Took: 212 * time.Second}
	second := Result{Name: "model", Plans: 100000, Passed: 100000, Took: time.Second}
	first.Print()
	second.Print()
	collected, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, first.String()+"\n"+second.String()+"\n", string(collected))
	assert.Regexp(t, `^faults  crash before each write, Glance upgrade +plans +34  passed +33  failed +1 +212s$`, first.String())
	assert.Len(t, second.String(), len(first.String()))
}

func TestARowWithoutItsPlansLacksThem(t *testing.T) {
	row := func(plans int) Result { return Result{Name: "stale views", Plans: plans} }
	t.Setenv(share.Much, "")
	assert.Empty(t, row(0).Lacks(0))
	assert.Equal(t, "stale views: 0 of 6 plans were met by what they are about", row(0).Lacks(6))
	assert.Empty(t, row(1).Lacks(6), "a share may have bad luck")
	t.Setenv(share.Much, "whole")
	assert.NotEmpty(t, row(2).Lacks(5))
	assert.Empty(t, row(3).Lacks(5))
	assert.NotEmpty(t, row(0).Lacks(1))
}
