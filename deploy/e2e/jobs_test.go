//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jobs returns a pool that evaluates each trial by its own Job, which the witness sees.
func (c *cluster) jobs() string {
	return c.jobPool(4, "e2e", `[linger, 10s, digits, "${args}"]`, `[{name: WITNESS, value: "http://witness:8080"}]`)
}

// jobPool returns the pool jobs, which evaluates each trial by a Job of an image with these
// arguments and variables, in YAML.
func (c *cluster) jobPool(slots int, image, args, env string) string {
	return fmt.Sprintf(`
  jobs:
    slots: %d
    kubejob:
      template: |
        apiVersion: batch/v1
        kind: Job
        spec:
          template:
            spec:
              securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
              containers:
                - name: main
                  image: %s%s:%s
                  args: %s
                  env: %s
                  resources: {requests: {cpu: 20m, memory: 32Mi}}
                  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}
`, slots, repository, image, c.tag, args, env)
}

// processes returns the pods of a component, each with the restarts of its containers:
// what stays the same while nothing is restarted.
func (c *cluster) processes(component string) []string {
	c.t.Helper()
	pods, err := c.pods(c.t.Context(), component)
	if err != nil {
		c.t.Fatal(err)
	}
	var all []string
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			all = append(all, fmt.Sprintf("pod %s: %s restarted %d times", p.UID, s.Name, s.RestartCount))
		}
	}
	slices.Sort(all)
	return all
}

// testJobs adds a pool, which does not restart NATS, and runs a study there by Jobs. The
// worker in charge is killed in the middle: its trials run elsewhere or its replacement
// takes them over, and the witness saw everything that counts.
func (c *cluster) testJobs() {
	before, began := c.processes("nats"), time.Now()
	c.chart("upgrade", c.installValues(2, c.tag, c.jobs()))
	c.settled(3*time.Minute, "worker", 3, c.tag)
	c.t.Logf("the workers of another pool are ready after %.1fs", time.Since(began).Seconds())
	defer func() {
		if after := c.processes("nats"); !slices.Equal(before, after) {
			c.t.Errorf("NATS was %q, and is %q after a pool was added and removed", before, after)
		}
	}()
	c.create(studyFile("jobs", "jobs", 12, 4, 0))
	c.ended(3*time.Minute, "jobs", 2)
	c.busy("jobs")
	c.delete("fantasia-worker-jobs-0", true)
	c.completed(6*time.Minute, "jobs")
	c.compare("jobs", 12, c.evaluations("jobs"))
	// The Jobs belong to the pool and are deleted with it.
	c.chart("upgrade", c.installValues(2, c.tag, ""))
	c.await(2*time.Minute, func(ctx context.Context) error {
		left, err := c.kube.BatchV1().Jobs(c.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d Jobs are left", len(left.Items))
		}
		return err
	})
	c.settled(2*time.Minute, "worker", 2, c.tag)
}
