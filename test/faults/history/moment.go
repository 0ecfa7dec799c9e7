package history

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Moment is one change of one object. Exactly one of Record, Job, Pod and Serving is set.
type Moment struct {
	// Revision orders moments of all kinds: they lie in one etcd.
	Revision uint64
	At       time.Time
	UID      types.UID
	Name     string
	// Leaving is that it is being deleted, and Gone that it is no more.
	Leaving, Gone bool

	Record  *Record
	Job     *Job
	Pod     *Pod
	Serving *Serving
}

// About is how many moments a watch of a resource tells of, "*" for all of them.
func About(moments []Moment, resource string) (many int) {
	for _, m := range moments {
		tells := false
		switch resource {
		case "glances", "keystones":
			tells = m.Record != nil
		case "jobs":
			tells = m.Job != nil
		case "pods":
			tells = m.Pod != nil
		case "deployments":
			tells = m.Serving != nil
		case "*":
			tells = true
		}
		if tells {
			many++
		}
	}
	return many
}

// Record is what the object itself asks for and records.
type Record struct {
	Generation int64
	Wish       upgrade.Desired
	State      upgrade.State
	Reason     string
	Ready      bool
}

// Job is one Job of the object.
type Job struct {
	Owner types.UID
	Work  upgrade.Work
	// Run is the command line and the database that the work is known by.
	Run string
	// Image is what its pods run; Outcome is Complete or Failed once it has ended.
	Image, Outcome string
}

// readsOwnSchemaOnly is whether the tools that it runs fail on a schema that a later release has expanded.
func (j Job) readsOwnSchemaOnly() bool { return strings.HasPrefix(j.Run, "run keystone-manage ") }

// Pod is one pod: of a Job, or of the API where Task is empty.
type Pod struct {
	Task    upgrade.Task
	Release string
	Image   string
	Phase   string
}

// Phases of a pod, as the API has them.
const (
	running   = "Running"
	succeeded = "Succeeded"
	failed    = "Failed"
)

// Outcomes of a Job.
const (
	complete = "Complete"
)

// ended is that no container of it runs or will.
func (p Pod) ended() bool { return p.Phase == succeeded || p.Phase == failed }

// Serving is the Deployment.
type Serving struct {
	Release, Image string
}

func revision(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
