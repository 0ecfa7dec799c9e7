package walks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestRestIsJudgedByWritesThatAreKnown(t *testing.T) {
	since := time.Now()
	write := func(name string, after time.Duration) harness.Call {
		return harness.Call{Verb: "update", Name: name, At: since.Add(after)}
	}
	one := settled{name: "w1", since: since, alone: func() bool { return false }}
	require.Empty(t, one.broken(harness.Calls{write("w1-db-sync", -time.Second), write("w12", time.Second)}))
	require.Contains(t, one.broken(harness.Calls{write("w1", -time.Second), write("w1", time.Second)}), "the controller did: update")
	refused := func(after time.Duration) harness.Call {
		return harness.Call{Verb: "create", Name: "w1", At: since.Add(after), Code: 409}
	}
	require.Empty(t, one.broken(harness.Calls{write("w1", -time.Second), refused(time.Second)}), "nothing was written")
	require.Contains(t, one.broken(harness.Calls{write("w1", -time.Second), refused(time.Minute)}), "the controller did: create", "it has no end")
	require.Contains(t, one.broken(harness.Calls{write("w12", -time.Second)}), "no write about w1")
	one.alone = func() bool { return true }
	require.Contains(t, one.broken(harness.Calls{write("w1", -time.Second)}), "has ended by itself")
	one.until = since.Add(time.Minute)
	require.Empty(t, one.broken(harness.Calls{write("w1", -time.Second), write("w1", time.Hour)}), "it is no more")
}
