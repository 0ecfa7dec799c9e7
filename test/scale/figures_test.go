package scale

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
)

// figure is a line of the table: what was measured, and the most that it should be; no goal if that is zero.
type figure struct {
	says     string
	measured float64
	format   string
	goal     float64
}

// table is what was measured, in the order in which it was.
type table struct{ figures []figure }

func (t *table) add(says, format string, measured float64) { t.goal(says, format, measured, 0) }

// goal adds a figure that should be at most this. A goal of zero is written as none below zero.
func (t *table) goal(says, format string, measured, most float64) {
	t.figures = append(t.figures, figure{says, measured, format, most})
	say("%s: %s", says, fmt.Sprintf(format, measured))
}

// nothing is the goal of what must not be at all.
const nothing = -1

func (t *table) String() string {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\tmeasured\tgoal\t")
	for _, f := range t.figures {
		wanted, verdict := "", ""
		most := f.goal
		if most == nothing {
			most = 0
		}
		if f.goal != 0 {
			wanted, verdict = "≤ "+fmt.Sprintf(f.format, most), "kept"
			if f.measured > most {
				verdict = "missed"
			}
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", f.says, fmt.Sprintf(f.format, f.measured), wanted, verdict)
	}
	_ = out.Flush() // a strings.Builder takes everything
	return text.String()
}

// say tells at once what goes on: `go test` keeps what a test logs to itself until the end.
func say(format string, args ...any) {
	if *loud {
		fmt.Fprintf(os.Stderr, "scale  "+format+"\n", args...)
	}
}
