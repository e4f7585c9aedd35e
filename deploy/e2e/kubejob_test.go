//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/messaging"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKubejobSample runs the sample of docs/operate/kubejob.md on a pool of the chart: each
// trial of the study is one Job of the digits program. The pool's pod is deleted in the
// middle, which hands trials back at no cost. Uninstalling the release deletes the Jobs
// too.
func TestKubejobSample(t *testing.T) {
	inTurn(t)
	c := newCluster(t)
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, "deploy/samples", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	template := strings.ReplaceAll(text("kubejob-template.yaml"), "digits:0.1.0", "digits:"+c.tag)
	c.chart("install", fmt.Sprintf(`
image: {tag: %q}
nats: {bundled: {accounts: true, persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
coordinator: {replicas: 1, resources: {requests: {cpu: 50m, memory: 64Mi}}}
pools:
  default: {replicas: 0, allowStudyCommands: true}
  jobs:
    slots: 4
    kubejob:
      sidecar: true
      template: |
        %s
`, c.tag, strings.ReplaceAll(template, "\n", "\n        ")))
	c.create(text("kubejob-study.yaml"))
	c.ended(5*time.Minute, "digits-jobs", 3)
	workers, err := c.workers(t.Context(), "jobs")
	if err != nil || len(workers) != 1 || workers[0].GetRuns() != messaging.RunsJobs {
		t.Errorf("the workers of the pool are %v (%v), want one that runs %s", workers, err, messaging.RunsJobs)
	}
	pods, err := c.kube.CoreV1().Pods(c.namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: "fantasia.dev/pool=jobs,app.kubernetes.io/component=worker"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("the pool has %d pods (%v), want 1", len(pods.Items), err)
	}
	if err := c.kube.CoreV1().Pods(c.namespace).Delete(t.Context(), pods.Items[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.completed(5*time.Minute, "digits-jobs")
	attempts := 0
	for _, trial := range c.trials("digits-jobs") {
		attempts += len(trial.GetAttempts())
		for i, a := range trial.GetAttempts() {
			last := i == len(trial.GetAttempts())-1
			if ok := a.GetState() == fantasiav1.AttemptState_ATTEMPT_STATE_SUCCEEDED; ok != last ||
				!last && a.GetState() != fantasiav1.AttemptState_ATTEMPT_STATE_HANDED_BACK {
				t.Errorf("attempt %d of trial %d is %v (%s)", a.GetNumber(), trial.GetNumber(), a.GetState(), a.GetFailure().GetMessage())
			}
		}
	}
	jobs, err := c.kube.BatchV1().Jobs(c.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "fantasia.dev/study=digits-jobs"})
	if err != nil || len(jobs.Items) != 12 {
		t.Errorf("there are %d Jobs (%v), want one for each trial: those handed back are deleted", len(jobs.Items), err)
	}
	t.Logf("12 trials, %d attempts", attempts)
	if out, err := c.helmCommand(t.Context(), "uninstall", release, "--wait", "--timeout", "90s").CombinedOutput(); err != nil {
		t.Fatalf("helm uninstall: %v\n%s", err, out)
	}
	c.await(2*time.Minute, func(ctx context.Context) error {
		jobs, err := c.kube.BatchV1().Jobs(c.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(jobs.Items) > 0 {
			err = errors.New("Jobs are left")
		}
		return err
	})
}
