// Package wire is the line between one controller process and the API server, and everything that can go wrong on it.
//
// A Wire is a proxy that the controller takes for the API server. It sees every request of that process, numbers those
// that ask for a change, and meets each with the fault that was planned for it: the process dies before the write is
// forwarded or after it is committed, the answer to a committed write is lost, or a write is refused as a conflict. It
// can hold back the events of watches, so that the process sees the world as it was; cut watches, and keep them cut
// while things happen; and be unreachable.
//
//	w := wire.Open(t, env.ControllerConfig(t))
//	w.Plan(wire.Fault{Deed: wire.KillAfter, At: wire.Point{Verb: "create", Resource: "jobs", Name: "images-db-expand", Nth: 1}})
//	process := env.RunController(t, ns, w.Config())
//	w.OnKill(func() { process.Kill(t) })
//
// A write is known by what it does and the so-manieth time ("update glances/status images 3"), since the order of
// writes that have nothing to do with each other changes from run to run; and by its number among all. Events have no
// number: they are sent beside the work. Leases are let through unseen.
package wire
