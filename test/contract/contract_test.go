package contract

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into the facts")

const (
	facts = "../../docs/openstack-facts.md"
	begin = "<!-- the table of test/contract; go test ./test/contract -update writes it -->\n"
	end   = "<!-- end of the table -->\n"
)

func table() string {
	rows := []string{"| Service | Program | Command | Situation | Exit |", "|---|---|---|---|---|"}
	for _, s := range Stories {
		for _, t := range s.Trials {
			rows = append(rows, s.Row(t))
		}
	}
	return strings.Join(rows, "\n") + "\n"
}

func TestTheFactsHaveTheTable(t *testing.T) {
	raw, err := os.ReadFile(facts)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	written, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", facts)
	}
	if *update {
		if err := os.WriteFile(facts, []byte(head+begin+"\n"+table()+"\n"+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if strings.TrimSpace(written) != strings.TrimSpace(table()) {
		t.Errorf("the table in %s is another than what is tried; go test ./test/contract -update writes it anew", facts)
	}
}

func TestEachTrialCanBeTold(t *testing.T) {
	rows := map[string]bool{}
	for _, s := range Stories {
		for _, trial := range s.Trials {
			row := s.Row(trial)
			if rows[row] && trial.Situation != empty {
				t.Errorf("twice: %s", row)
			}
			rows[row] = true
			if trial.Command != API && !strings.HasPrefix(trial.Command, s.Tool()+" ") {
				t.Errorf("%s is no command of %s", trial.Command, s.Tool())
			}
			if len(s.Words(trial)) < 2 || trial.Situation == "" || strings.ContainsAny(row, "\n") {
				t.Errorf("cannot be told: %q", row)
			}
		}
	}
}
