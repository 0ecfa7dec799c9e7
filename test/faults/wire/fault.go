package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Deed is what is done to a write.
type Deed string

// The deeds.
const (
	// KillBefore ends the process; the write never reaches the API server.
	KillBefore Deed = "kill before"
	// KillAfter ends the process when the write is committed and not yet answered.
	KillAfter Deed = "kill after"
	// LoseReply cuts the connection when the write is committed.
	LoseReply Deed = "lose reply"
	// TimeOut answers a committed write as the API server does when it could not tell in time.
	TimeOut Deed = "time out"
	// Conflict refuses it, and those like it that follow, as if somebody else had written meanwhile.
	Conflict Deed = "conflict"
	// Hold keeps it on its way until Release: the process has sent it, and the API server has not got it.
	Hold Deed = "hold"
)

// Deeds lists them.
var Deeds = []Deed{KillBefore, KillAfter, LoseReply, TimeOut, Conflict, Hold}

// Fault is a deed to be done to one write.
type Fault struct {
	Deed Deed
	// At is the write; or Number is, if At is empty.
	At     Point
	Number int
	// Times is how many in a row, for a Conflict.
	Times int
}

// String is "kill before: create jobs images-db-expand 1", "conflict 50: update deployments images 1", or by number
// "kill after: write 7".
func (f Fault) String() string {
	deed, at := string(f.Deed), f.At.String()
	if f.Times > 0 {
		deed += " " + strconv.Itoa(f.Times)
	}
	if f.At == (Point{}) {
		at = "write " + strconv.Itoa(f.Number)
	}
	return deed + ": " + at
}

// ParseFault reads what String wrote.
func ParseFault(text string) (f Fault, err error) {
	deed, at, found := strings.Cut(text, ":")
	if !found {
		return f, fmt.Errorf("%q is no fault: it must look like \"kill before: create jobs images-db-expand 1\"", text)
	}
	deed, at = strings.TrimSpace(deed), strings.TrimSpace(at)
	for _, known := range Deeds {
		times, is := strings.CutPrefix(deed, string(known))
		if !is {
			continue
		}
		f.Deed = known
		if times = strings.TrimSpace(times); times != "" {
			if f.Times, err = strconv.Atoi(times); err != nil || f.Times < 1 {
				return f, fmt.Errorf("%q is no fault: %q is no number of times", text, times)
			}
		}
	}
	if f.Deed == "" {
		return f, fmt.Errorf("%q is no fault: it must begin with one of %v", text, Deeds)
	}
	if number, is := strings.CutPrefix(at, "write "); is {
		if f.Number, err = strconv.Atoi(number); err != nil || f.Number < 1 {
			return f, fmt.Errorf("%q is no fault: %q is no number of a write", text, number)
		}
		return f, nil
	}
	f.At, err = ParsePoint(at)
	return f, err
}

// meets is whether the fault is for this write.
func (f Fault) meets(w Write) bool {
	last := max(1, f.Times) - 1
	if f.At == (Point{}) {
		return !w.Event() && w.Number >= f.Number && w.Number <= f.Number+last
	}
	return f.At.same(w.Point) && w.Nth >= f.At.Nth && w.Nth <= f.At.Nth+last
}
