// Package story tells what an object can live through, so that an experiment can disturb it: an install, an upgrade, an
// abort in each phase, a phase that fails and is repaired. Each is lived undisturbed once; what it came to then, what was
// executed on which image, and what served, is what every disturbed run of it must come to as well.
//
// Stories are lived in lanes. A lane is a namespace with a real controller process behind a wire, where one object after
// another lives its story while other lanes do the same. The controller stays, unless the wire kills it; then the lane
// starts it anew, as a kubelet does. Whatever comes between, the rules of package history hold for the whole of each run,
// it ends in bounded time, and afterwards the controller writes nothing.
package story
