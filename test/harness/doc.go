// Package harness is the world that integration tests live in: a real etcd, a real API server with RBAC, Pod Security
// and quota, and the real kube-controller-manager beside it. Jobs are retried, Deployments rolled, children collected
// and pods refused by the very code that does so in a cluster. Two things are missing, the scheduler and the nodes, and
// one thing plays them: Kubelet, the stand-in that its own comment describes. No container ever runs.
//
// One world serves a whole test binary:
//
//	func TestMain(m *testing.M) { harness.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		env := harness.Shared(t)
//		ns := env.Namespace(t)                                                        // restricted, and gone afterwards
//		env.Kubelet.Script(t, harness.Pods{Namespace: ns, Component: "db-expand"},    // how pods behave
//			harness.Fail(1, "no right to create triggers"))
//		env.Create(t, build.DatabaseSecret(ns), build.Glance("images", build.In(ns)))
//		harness.Await(t, env, build.Glance("images", build.In(ns)), "the walk to end", func(g *v1alpha1.Glance) string {
//			if g.Status.InstalledRelease != "2026.1" { return "installed release is " + g.Status.InstalledRelease }
//			return ""
//		})
//	}
//
// StartController runs the real binary of the controller for a namespace, with the rights that deploy/base ships and no
// others; it can be stopped, killed and started again. CallsSince tells from the API server's own audit log what an actor
// asked of it. Record writes down what becomes of an object, as a story that can be compared with a golden file.
//
// How fast things go, so that nobody waits for what cannot come sooner: the Job controller looks at finished pods once
// a second, so a Job takes about two seconds even if its pod ends at once. It waits 10, 20, 40 and 80 seconds between
// retries, counted from the moment the containers are reported to have ended; the stand-in reports failures an hour late,
// so the real controller makes its real five attempts in about six seconds. FailInRealTime reports them when they are.
package harness
