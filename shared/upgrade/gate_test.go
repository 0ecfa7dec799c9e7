package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEachClauseAloneHoldsContractBack(t *testing.T) {
	const target = "r:2026.2"
	assert.Empty(t, Held(rolledTo(target), target), "a finished rollout holds nothing back")
	for _, c := range []struct {
		name   string
		change func(*Deployment)
		says   string
	}{
		{"foreign", func(d *Deployment) { d.Standing = Foreign }, "Deployment glance belongs to somebody else"},
		{"absent", func(d *Deployment) { d.Standing = Absent }, "the Deployment does not exist yet"},
		{"leaving", func(d *Deployment) { d.Standing = Leaving }, "Deployment glance is being deleted"},
		{"paused", func(d *Deployment) { d.Paused = true }, "Deployment glance is paused: resume it to go on"},
		{"another image", func(d *Deployment) { d.Image = "r:2026.1" }, "Deployment glance does not carry the template of r:2026.2 yet"},
		{"another template", func(d *Deployment) { d.Unrendered = true }, "Deployment glance does not carry the template of r:2026.2 yet"},
		{"unobserved", func(d *Deployment) { d.Unobserved = true }, "the newest template of Deployment glance is not observed yet"},
		{"too few updated", func(d *Deployment) { d.Updated = 1 }, "1 of 2 pods are updated, 2 available, 2 in all"},
		{"too many in all", func(d *Deployment) { d.Total = 3 }, "2 of 2 pods are updated, 2 available, 3 in all"},
		{"too few in all", func(d *Deployment) { d.Total = 1 }, "2 of 2 pods are updated, 2 available, 1 in all"},
		{"too few available", func(d *Deployment) { d.Available = 1 }, "2 of 2 pods are updated, 1 available, 2 in all"},
		{"more replicas asked for", func(d *Deployment) { d.Replicas = 3 }, "2 of 3 pods are updated, 2 available, 2 in all"},
		{"fewer replicas asked for", func(d *Deployment) { d.Replicas = 1 }, "2 of 1 pods are updated, 2 available, 2 in all"},
		{"an old pod terminates", func(d *Deployment) { d.Pods, d.Outdated = 3, []string{"glance-a"} }, "pods of the previous template are left: glance-a"},
		{"many old pods terminate", func(d *Deployment) { d.Outdated = []string{"a", "b", "c", "d", "e"} }, "pods of the previous template are left: a, b, c and 2 more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := rolledTo(target)
			c.change(&d)
			assert.Equal(t, c.says, Held(d, target))
		})
	}
}

func TestZeroReplicasPassOnlyWhenNoPodAtAllIsLeft(t *testing.T) {
	empty := Deployment{Name: "glance", Standing: Current, Image: "r:2026.2"}
	assert.Empty(t, Held(empty, "r:2026.2"))
	terminating := empty
	terminating.Pods = 2
	assert.Equal(t, "no replicas are asked for and 2 pods are left", Held(terminating, "r:2026.2"))
	terminating.Outdated = []string{"glance-a"}
	assert.Equal(t, "pods of the previous template are left: glance-a", Held(terminating, "r:2026.2"))
	scalingDown := empty
	scalingDown.Total, scalingDown.Pods = 1, 1
	assert.Equal(t, "0 of 0 pods are updated, 0 available, 1 in all", Held(scalingDown, "r:2026.2"))
}

// In the middle of a surge the old pods satisfy what looks like readiness:
// enough of them are available.
func TestAvailableAloneDoesNotPass(t *testing.T) {
	surge := Deployment{Name: "glance", Standing: Current, Image: "r:2026.2", Replicas: 2, Total: 3, Updated: 1, Available: 2, Pods: 3, Outdated: []string{"glance-a", "glance-b"}}
	assert.Equal(t, "1 of 2 pods are updated, 2 available, 3 in all", Held(surge, "r:2026.2"))
}

func TestContractWaitsUntilItIsReadPastAnyCacheThatNoPodIsLeft(t *testing.T) {
	for _, s := range []State{upgrading(RollingUpdate), upgrading(Contracting)} {
		o := Observed{Deployment: rolledTo(s.TargetImage)}
		got := Decide(s, wish("2026.2", "r:2026.2"), o)
		assert.Equal(t, Wait, got.Step)
		assert.Contains(t, got.Database.Message, "looking for pods of the previous template")
		o.Confirmed = true
		assert.NotEqual(t, Wait, Decide(s, wish("2026.2", "r:2026.2"), o).Step)
	}
}
