// Package upgrade is the planner: the law of which release may follow which,
// and the one next step of a walk from one release to the next. It is pure.
// Both binaries call it, the webhook to judge a wish at admission, the
// controller to judge it again and to act.
//
// # The walk
//
// A schema change has two halves. Expand and migrate add what the new release
// needs and leave what the old one reads; contract removes it. Between the two
// the pods roll. So the walk is
//
//	Expanding → Migrating → RollingUpdate → Contracting → promoted
//
// with a Job on the target image in every phase but RollingUpdate. Contract is
// the only step that cannot be taken back, so it waits for the rollout gate
// (Held), which wants proof that no pod of the previous template is left.
//
// # The law
//
// Check compares the recorded State with the Desired wish and with nothing
// else: one release forward at a time, never back, image and release together,
// and no third release while a walk is active.
//
// # The invariants
//
//   - A decision either moves the recorded state or touches the world, never
//     both; so a crash between two steps loses nothing.
//   - A rejection changes nothing.
//   - Only a finished contract promotes.
//   - An event implies a transition, or a failure not yet reported.
//   - From any legal state, with Jobs that finish, the walk ends.
//   - From any phase, wanting the installed release ends with no phase Job, no
//     pod of one, and no target.
//   - Check accepts exactly what Decide does not reject. Before that a lost
//     status is recovered from the Deployment, whatever the wish.
//   - What is installed, and where a walk goes, can always be asked for.
//   - No two pieces of schema work of one object ever run side by side.
package upgrade
