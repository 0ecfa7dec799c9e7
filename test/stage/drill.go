package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/drill"
	"github.com/c5c3/openstack-upgrade/test/drill/schema"
)

// LoadDrill puts the drill's images into the node.
func (s *Stage) LoadDrill(ctx context.Context, tags ...string) error {
	for _, tag := range tags {
		tar, err := drill.Ensure(ctx, s.Say, tag)
		if err != nil {
			return err
		}
		if _, err := s.Load(ctx, drill.Ref(tag), tar); err != nil {
			return err
		}
	}
	return nil
}

// Drill is a Glance that the drill stands in for, at the first release. Everything asks for CPU, little as it is: on a
// busy node pods without a share are starved while others start.
func Drill(namespace string, options ...build.GlanceOption) *v1alpha1.Glance {
	cpu := func(share string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(share)}}
	}
	usual := []build.GlanceOption{
		build.In(namespace), build.Lockstep(ReleaseBefore), build.Repository(drill.Repository), build.Database(DatabaseSecret),
		build.JobResources(cpu("30m")),
		build.Adjust(func(g *v1alpha1.Glance) {
			g.Spec.Image.PullPolicy = corev1.PullNever
			g.Spec.Deployment.Resources = cpu("40m")
		}),
	}
	return build.Glance("images", append(usual, options...)...)
}

// InstallDrill makes a namespace, a database named after it and a drill in it, and waits until it is Ready.
func (s *Stage) InstallDrill(ctx context.Context, g *v1alpha1.Glance, patience time.Duration) (client.ObjectKey, error) {
	key := client.ObjectKeyFromObject(g)
	if err := s.Namespace(ctx, g.Namespace); err != nil {
		return key, err
	}
	url, err := s.Database(ctx, DatabaseOf(g.Namespace))
	if err != nil {
		return key, err
	}
	if err := s.PutConnection(ctx, g.Namespace, url); err != nil {
		return key, err
	}
	return key, s.CreateDrill(ctx, g, patience)
}

// CreateDrill makes a drill where everything it needs is there, and waits until it is Ready.
func (s *Stage) CreateDrill(ctx context.Context, g *v1alpha1.Glance, patience time.Duration) error {
	if err := s.Client.Create(ctx, g.DeepCopy()); err != nil {
		return fmt.Errorf("create glance %s in %s: %w", g.Name, g.Namespace, err)
	}
	what := fmt.Sprintf("the drill in %s to be Ready", g.Namespace)
	return s.AwaitObject(ctx, client.ObjectKeyFromObject(g), what, patience, Ready)
}

// Verify looks at every row of a drill's database, through one of its pods.
func (s *Stage) Verify(ctx context.Context, key client.ObjectKey) (schema.Report, error) {
	var report schema.Report
	out, err := s.Ask(ctx, key, "/drill/verify")
	if err != nil {
		return report, fmt.Errorf("verify the rows of %s: %w", key, err)
	}
	return report, json.Unmarshal([]byte(out), &report)
}

// Ask gets a path of a drill's API, through its Service.
func (s *Stage) Ask(ctx context.Context, key client.ObjectKey, path string) (string, error) {
	return s.Kubectl(ctx, "", "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/services/%s:api/proxy%s", key.Namespace, key.Name, path))
}

// LetGo gives the word that a task or a request of a drill waits for.
func (s *Stage) LetGo(ctx context.Context, namespace, word string) error {
	if _, err := s.SQL(ctx, DatabaseOf(namespace), fmt.Sprintf("INSERT INTO drill_go VALUES ('%s')", word)); err != nil {
		return fmt.Errorf("give the word %s in %s: %w", word, namespace, err)
	}
	return nil
}

// Run is one start of a command that may change the schema, as the database has it.
type Run struct {
	Task, Tag, Pod string
	// Open: killed or under way.
	Open       bool
	Overlapped bool
}

// Runs lists them in order.
func (s *Stage) Runs(ctx context.Context, namespace string) ([]Run, error) {
	out, err := s.SQL(ctx, DatabaseOf(namespace), "SELECT task, tag, host, ended IS NULL, overlapped FROM drill_runs ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("list the runs in %s: %w", namespace, err)
	}
	var runs []Run
	for line := range strings.Lines(out) {
		column := strings.Fields(line)
		if len(column) != 5 {
			return nil, fmt.Errorf("list the runs in %s: cannot read %q", namespace, line)
		}
		runs = append(runs, Run{Task: column[0], Tag: column[1], Pod: column[2], Open: column[3] == "1", Overlapped: column[4] == "1"})
	}
	return runs, nil
}

// AtWork waits until a task has begun that many times and the last one is under way, and returns its pod's name.
func (s *Stage) AtWork(ctx context.Context, namespace, task string, times int, patience time.Duration) (pod string, err error) {
	err = s.Await(ctx, fmt.Sprintf("%s to be at work in %s", task, namespace), patience, func(ctx context.Context) (bool, string, error) {
		runs, err := s.Runs(ctx, namespace)
		if err != nil {
			return false, err.Error(), nil
		}
		n := 0
		for _, run := range runs {
			if run.Task == task {
				n++
				pod = run.Pod
			}
		}
		at := len(runs) - 1
		return n == times && runs[at].Task == task && runs[at].Open, fmt.Sprintf("%d runs of it so far", n), nil
	})
	return pod, err
}
