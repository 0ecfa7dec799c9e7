package upgrade

import (
	"strings"
)

// plan is a path through the model in the words in which test/faults replays it on the real thing: a statement for each
// step, and each write with the so-manieth time that it is made.
func plan(path []string) string {
	var made, statements []string
	jobs := map[string]int{}
	count := func(writes string) string {
		var counted []string
		for _, write := range strings.Split(writes, ", ") {
			counted = append(counted, nth(write, made))
			made = append(made, write)
		}
		return strings.Join(counted, ", ")
	}
	for _, says := range path {
		switch kind, rest, _ := strings.Cut(says, " "); kind {
		case "write", "late:":
			if rest, refused := strings.CutSuffix(rest, " (refused)"); !refused && rest != "" {
				statements = append(statements, "write "+count(rest))
			}
		case "kill":
			if rest == "" {
				statements = append(statements, "kill")
				continue
			}
			statements = append(statements, "kill after: "+count(strings.TrimPrefix(rest, "after: ")))
		case "Job":
			if task, failed := strings.CutSuffix(rest, " fails"); failed {
				statements = append(statements, "job "+task+" fails")
				jobs[task] = 0
				continue
			}
			stages := []string{"runs", "ends", "is complete"}
			statements = append(statements, "job "+rest+" "+stages[min(jobs[rest], len(stages)-1)])
			jobs[rest]++
		default:
			statements = append(statements, says)
		}
		if made := strings.TrimPrefix(says, "write "); strings.Contains(made, "create jobs ") {
			_, task, _ := strings.Cut(made, "create jobs images-")
			task, _, _ = strings.Cut(task, ",")
			jobs[task] = 0
		}
	}
	return strings.Join(statements, "; ")
}
