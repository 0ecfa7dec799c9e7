package scale

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACrowdIsUpgradedAtOnceAndRests(t *testing.T) {
	require.LessOrEqual(t, *upgrades, *idle, "-upgrades is more than -idle")
	c := assemble(t)
	c.controller = c.start("crowd")
	say("install the specimen")
	c.install()
	c.multiply(1, *upgrades)
	c.upgradeAll(*upgrades)
	c.multiply(*upgrades, *idle)
	c.restart()
	if *quiet >= time.Minute { // these take their time, however small the crowd is
		c.failOver()
		c.looks()
	}
	c.leaveAlone(*quiet)
	if *loud {
		say("\n%s", &c.table)
	}
}
