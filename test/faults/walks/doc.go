// Package walks lets chance play the people, the Jobs and the accidents: seeded sequences of edits (good ones, bad ones,
// reverts, images alone), deletions, a webhook that comes and goes, Jobs that fail or hang, pods that do not get ready,
// crashes, conflicts, stale views, missed edges and lost records, against the real controller on a real API server with
// the real Job and Deployment controllers.
//
// Of every walk three things are demanded. Its history, from watches, breaks none of the rules of package history. After
// the last fault, with what failed repaired and a wish that the law accepts, it comes to rest in bounded time. And then
// the controller writes nothing more about it.
package walks
