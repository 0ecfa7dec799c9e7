package upgrade

import "testing"

// benched are the wishes that cost most: those that are judged in full.
func benched() []situation {
	s := upgrading(Contracting)
	noted := upgrading(RollingUpdate)
	jobs := map[Task]Job{}
	for _, task := range Tasks {
		jobs[task] = Job{Name: "glance-" + string(task), Standing: Current, Progress: Complete}
	}
	jobs[Contract] = Job{Name: "glance-db-contract", Standing: Current, Progress: Running, Note: "pod glance-db-contract-x runs since 12:00"}
	o := Observed{Jobs: jobs, Deployment: rolledTo("r:2026.2"), Recorded: &noted, Confirmed: true}
	return []situation{
		{s: s, d: wish("2026.2", "r:2026.2"), o: o},
		{s: s, d: wish("2027.1", "r:2026.1"), o: o},
		{s: upgrading(RollingUpdate), d: wish("2026.2", "r:2026.2"), o: o},
		{s: installed("2026.1", "r:2026.1"), d: wish("2026.1", "r:2026.2"), o: o},
		{s: installed("2026.2", "r:2026.2"), d: wish("2026.2", "r:2026.2"), o: o},
	}
}

func BenchmarkDecide(b *testing.B) {
	all := benched()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := &all[i%len(all)]
		Decide(c.s, c.d, c.o)
	}
}

func BenchmarkCheck(b *testing.B) {
	all := benched()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := &all[i%len(all)]
		Check(c.s, c.d)
	}
}
