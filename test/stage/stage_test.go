package stage

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

const auditLines = `{"kind":"Event","stage":"ResponseStarted","verb":"watch","user":{"username":"u"}}
{"kind":"Event","stage":"ResponseComplete","verb":"update","user":{"username":"u"},"userAgent":"controller/v1","objectRef":{"resource":"glances","subresource":"status","namespace":"n","name":"images"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T12:00:00.5Z"}
{"kind":"Event","stage":"ResponseComplete","verb":"create","user":{"username":"u"},"objectRef":{"resource":"jobs","namespace":"n","name":"images-db-expand"},"responseStatus":{"code":409}}
{"kind":"Event","stage":"ResponseComp`

func TestTheAuditLogIsReadUpToItsLastWholeLine(t *testing.T) {
	calls, err := readCalls(strings.NewReader(auditLines))
	if err != nil || len(calls) != 2 {
		t.Fatalf("%v, %v", calls, err)
	}
	if c := calls[0]; c.What() != "update glances/status" || c.Name != "images" || c.Code != 200 || !c.Writes() || c.At.IsZero() {
		t.Errorf("read %+v", c)
	}
}

func TestEveryWriteOfTheControllerIsCountedSomewhere(t *testing.T) {
	var calls []Call
	add := func(n int, verb, resource, name string, code int) {
		resource, sub, _ := strings.Cut(resource, "/")
		for range n {
			calls = append(calls, Call{Verb: verb, Resource: resource, Subresource: sub, Name: name, Code: code})
		}
	}
	add(7, "update", "glances/status", "images", 200)
	add(1, "create", "jobs", "images-db-expand", 201)
	add(1, "create", "jobs", "images-db-migrate", 201)
	add(1, "create", "jobs", "images-db-contract", 201)
	add(1, "update", "deployments", "images", 200)
	add(5, "create", "events", "", 201)
	add(1, "delete", "jobs", "images-db-sync", 200)
	add(1, "create", "jobs", "images-db-sync", 201)
	add(1, "update", "configmaps", "images-config", 200)
	add(1, "update", "glances/status", "images", 409)
	add(2, "list", "pods", "", 200)
	tally := Count(calls, 5)
	if tally.Core() != 14 || tally.Words != 2 || tally.Cleanup != 1 || tally.Sync != 1 || len(tally.Other) != 1 || len(tally.Refused) != 1 || len(tally.Reads) != 2 {
		t.Errorf("%+v", tally)
	}
	if tally.Total()+len(tally.Refused)+len(tally.Reads) != len(calls) {
		t.Errorf("%d writes are counted of %d calls", tally.Total(), len(calls))
	}
}

func TestAFilmKnowsHowLongEachPhaseLasted(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var f Film
	for i, phase := range []string{"", "Expanding", "Expanding", "Migrating", "", "Expanding"} {
		g := &v1alpha1.Glance{}
		g.Status.UpgradePhase = phase
		f.moments = append(f.moments, Moment{At: noon.Add(time.Duration(i) * time.Second), Object: g})
	}
	want := []Span{{"Expanding", noon.Add(time.Second), 2 * time.Second}, {"Migrating", noon.Add(3 * time.Second), time.Second}}
	if got := f.Spans(); !slices.Equal(got, want) {
		t.Errorf("spans are %v, want %v", got, want)
	}
}

func TestACommandIsShownAsItCanBeTyped(t *testing.T) {
	got := CommandLine("patch", "glance", "images", "-p", `{"spec":{"image":{"tag":"it's"}}}`)
	if want := `kubectl patch glance images -p '{"spec":{"image":{"tag":"it'\''s"}}}'`; got != want {
		t.Errorf("shown is %s", got)
	}
}

func TestADatabaseNameThatIsNoNameIsRefused(t *testing.T) {
	for _, name := range []string{"", "a-b", "a;b", "A"} {
		if _, err := (&Stage{}).Database(t.Context(), name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestCallsOfTheShippedWebhookAreCounted(t *testing.T) {
	shipped, err := os.ReadFile("../../deploy/base/webhook/validating.yaml")
	if err != nil || !strings.Contains(string(shipped), "- name: "+hookName+" ") {
		t.Fatalf("the shipped configuration has no entry %s (%v)", hookName, err)
	}
	found := countedCall.FindStringSubmatch(`apiserver_admission_webhook_request_total{code="200",name="` + hookName + `",operation="UPDATE"} 918`)
	if len(found) != 2 || found[1] != "918" {
		t.Errorf("counted %v", found)
	}
}
