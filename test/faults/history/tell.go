package history

import (
	"fmt"
	"strings"
)

// Tell is a history for people to read, without the moments that change nothing of what is told.
func Tell(moments []Moment) string {
	var out strings.Builder
	last := map[string]string{}
	for _, m := range moments {
		told := m.String()
		if key := string(m.UID); last[key] != told {
			last[key] = told
			fmt.Fprintf(&out, "%9d  %s  %s\n", m.Revision, m.At.Format("15:04:05.000"), told)
		}
	}
	return out.String()
}

// String is what a moment says.
func (m Moment) String() string {
	text := ""
	switch {
	case m.Record != nil:
		s := m.Record.State
		text = fmt.Sprintf("object %.8s  wants %s %s; installed %q %s, target %q %s, phase %q, attempt %d; %s %t", m.UID, m.Record.Wish.Release, m.Record.Wish.Image,
			s.Installed, s.InstalledImage, s.Target, s.TargetImage, s.Phase, s.Attempt, m.Record.Reason, m.Record.Ready)
	case m.Job != nil:
		w := m.Job.Work
		text = fmt.Sprintf("Job %s %.8s of %.8s  %s → %s, attempt %d, %s %s", m.Name, m.UID, m.Job.Owner, w.From, w.To, w.Attempt, w.Image, m.Job.Outcome)
	case m.Pod != nil:
		text = fmt.Sprintf("pod %s  %s %s %s", m.Name, m.Pod.Image, m.Pod.Release, m.Pod.Phase)
	case m.Serving != nil:
		text = fmt.Sprintf("Deployment %s  %s %s", m.Name, m.Serving.Image, m.Serving.Release)
	}
	switch {
	case m.Gone:
		text += ", gone"
	case m.Leaving:
		text += ", leaving"
	}
	return text
}
