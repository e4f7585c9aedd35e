//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const startStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: start}
spec:
  objective: {metric: error, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  budget: {maxTrials: 4}
  parallelism: 4
  trial: {command: [actor]}
`

// TestStart measures a start: from helm install to the first completed trial of a program
// that takes no time. Requests, disks and replicas are the chart's defaults, which fit a
// node of two cores with two workers.
func TestStart(t *testing.T) {
	inTurn(t)
	c := newCluster(t)
	c.began = time.Now()
	c.chart("install", fmt.Sprintf(`
image: {tag: %[1]q}
pools: {default: {image: "%[2]se2e:%[1]s", allowStudyCommands: true, slots: 2, replicas: 2}}
`, c.tag, repository))
	c.timed("helm install has returned")
	c.create(startStudy)
	c.timed("a study is created")
	c.completed(time.Minute, "start")
	c.settled(time.Minute, "worker", 2, c.tag)
	c.settled(time.Minute, "coordinator", 3, c.tag)
	c.allRun(time.Minute)
	first := slices.MinFunc(c.trials("start"), func(a, b *fantasiav1.Trial) int {
		return a.GetTimes().GetFolded().AsTime().Compare(b.GetTimes().GetFolded().AsTime())
	})
	t.Logf("%7.1fs  the first trial has completed", first.GetTimes().GetFolded().AsTime().Sub(c.began).Seconds())
	if left := c.requested(t.Context()); left > 1000 {
		t.Errorf("the release requests %d millicores, want at most half of two cores", left)
	}
}

// requested returns the CPU that the namespace's pods request, in thousandths of a core.
func (c *cluster) requested(ctx context.Context) (total int64) {
	pods, err := c.kube.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range pods.Items {
		for _, container := range p.Spec.Containers {
			total += container.Resources.Requests.Cpu().MilliValue()
		}
	}
	return total
}
