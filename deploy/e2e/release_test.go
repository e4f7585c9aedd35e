//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
)

// installValues returns the values of the tests: the bundled NATS and etcd, and one
// pool with the training program's image, into which the worker is copied.
func (c *cluster) installValues(replicas int, tag, extra string) string {
	return fmt.Sprintf(`
image: {tag: %[2]q}
nats: {bundled: {accounts: true}}
coordinator: {resources: {requests: {cpu: 50m, memory: 64Mi}}}
poolDefaults:
  resources: {requests: {cpu: 50m, memory: 64Mi}}
  drainSeconds: 2
  env: [{name: WITNESS, value: "http://witness:8080"}]
pools:
  default:
    image: %[3]se2e:%[2]s
    allowStudyCommands: true
    slots: 2
    replicas: %[1]d
%[4]s`, replicas, tag, repository, extra)
}

// studyFile returns a study of the digits program wrapped by the witness. Each
// evaluation takes the given number of seconds longer than necessary. The learning
// rates are chosen so that the training does not diverge.
func studyFile(name, pool string, trials, parallelism, seconds int) string {
	return fmt.Sprintf(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: error, direction: minimize, take: last}
  parameters:
    - {name: learning_rate, type: float, min: 1e-3, max: 0.2, scale: log}
    - {name: hidden, type: int, min: 16, max: 48, scale: log}
    - {name: epochs, type: fixed, value: 10}
  algorithm: {seed: 1}
  budget: {maxTrials: %d}
  parallelism: %d
  pool: %s
  trial:
    command: [witness, linger, %ds, digits, "${args}"]
    timeout: 3m
    retries: {lost: 5}
`, name, trials, parallelism, pool, seconds)
}

// part is a part of a test that continues where the previous one ended.
type part struct {
	name string
	run  func(c *cluster)
}

// play runs the parts one after another, until one fails.
func (c *cluster) play(parts []part) {
	for _, p := range parts {
		if !c.t.Run(p.name, func(t *testing.T) { p.run(c.in(t)) }) {
			return
		}
	}
}

// TestRelease tests the life cycle of one release.
func TestRelease(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.startWitness()
	c.await(time.Minute, func(ctx context.Context) (err error) {
		if c.before, err = c.objects(ctx); err == nil && !slices.Contains(c.before, "ConfigMap kube-root-ca.crt") {
			err = errors.New("the namespace is not ready")
		}
		return err
	})
	c.play([]part{
		{"install", (*cluster).testInstall},
		{"helm test", (*cluster).testHelmTest},
		{"study of a pool", (*cluster).testPool},
		{"upgrade and roll back", (*cluster).testUpgrade},
		{"scale", (*cluster).testScale},
		{"the leader scales", (*cluster).testAutoscale},
		{"uninstall", (*cluster).testUninstall},
	})
}

// testInstall measures each step from helm install to the first completed trial.
func (c *cluster) testInstall() {
	c.began = time.Now()
	c.chart("install", c.installValues(2, c.tag, ""))
	c.timed("helm install has returned")
	for _, component := range []string{"etcd", "nats"} {
		c.settled(2*time.Minute, component, 1, c.tag)
		c.timed("%s is ready", component)
	}
	c.await(2*time.Minute, func(ctx context.Context) error {
		_, err := c.study(ctx, "none")
		if err == nil || connect.CodeOf(err) == connect.CodeNotFound {
			return nil
		}
		return err
	})
	c.timed("the API answers")
	c.refusesStrangers()
	c.create(studyFile("first", "default", 4, 4, 0))
	c.timed("a study is created")
	c.await(2*time.Minute, func(ctx context.Context) error {
		workers, err := c.workers(ctx, "default")
		if err == nil && len(workers) == 0 {
			err = errors.New("no worker has come")
		}
		return err
	})
	c.timed("a worker is there")
	c.ended(2*time.Minute, "first", 1)
	c.timed("the first trial has completed")
	c.settled(2*time.Minute, "coordinator", 3, c.tag)
	c.settled(2*time.Minute, "worker", 2, c.tag)
	c.timed("every pod is ready")
	c.completed(2*time.Minute, "first")
	c.compare("first", 4, c.evaluations("first"))
}

func (c *cluster) testHelmTest() {
	c.helm("test", release, "--timeout", "5m")
}

// testPool runs a study undisturbed.
func (c *cluster) testPool() {
	c.create(studyFile("pool", "default", 16, 4, 0))
	c.completed(5*time.Minute, "pool")
	ways := c.compare("pool", 16, c.evaluations("pool"))
	if ways[fantasiav1.AttemptState_ATTEMPT_STATE_SUCCEEDED] != 16 || len(ways) != 1 {
		c.t.Errorf("the attempts ended as %v, want each of 16 trials to succeed at once", ways)
	}
}
