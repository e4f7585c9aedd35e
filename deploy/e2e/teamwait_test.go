//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/study"
)

// waits runs a study whose pod needs what no node has, and one whose Job is suspended until a queue admits it, as
// Kueue's are. Both say what they wait for. The second goes on when it is admitted.
func (g *team) waits() {
	g.t.Helper()
	began := time.Now()
	g.apply("device", 1, "limits: {memory: 64Mi}", "limits: {memory: 64Mi, example.com/device: 1}")
	g.stalled("device", "Insufficient example.com/device")
	g.t.Logf("a study said %.1f s after it was applied that its trial waits for a device", time.Since(began).Seconds())
	g.apply("queue", 1, "      spec:\n        template:", "      spec:\n        suspend: true\n        template:")
	g.stalled("queue", "suspended until its queue admits it")
	jobs, err := g.jobsOf(g.t.Context(), "queue")
	if err != nil || len(jobs) != 1 {
		g.t.Fatalf("there are %d Jobs (%v), want 1", len(jobs), err)
	}
	if _, err := g.kube.BatchV1().Jobs(g.namespace).Patch(g.t.Context(), jobs[0].Name, types.MergePatchType,
		[]byte(`{"spec": {"suspend": false}}`), metav1.PatchOptions{}); err != nil {
		g.t.Fatal(err)
	}
	g.awaitStatus(2*time.Minute, "queue", func(s *kube.Status) bool { return s.State == study.Completed })
	g.erase("device")
}

// stalled waits until a study's condition, an event and the plugin say what its trial waits for.
func (g *team) stalled(name, says string) {
	g.t.Helper()
	g.awaitStatus(time.Minute, name, func(s *kube.Status) bool {
		for _, c := range s.Conditions {
			if c.Type == kube.ConditionProgressing && c.Reason == kube.ReasonTrialsWait {
				return strings.Contains(c.Message, says)
			}
		}
		return false
	})
	g.await(time.Minute, func(ctx context.Context) error {
		events, err := g.kube.CoreV1().Events(g.namespace).List(ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.kind=Study,involvedObject.name=" + name})
		if err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == kube.ReasonTrialsWait && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, says) {
				return nil
			}
		}
		return fmt.Errorf("none of %d events of study %s says %q", len(events.Items), name, says)
	})
	if out, err := g.callPlugin(g.home, "trial", name, "1"); err != nil || !strings.Contains(out, says) {
		g.t.Errorf("kubectl fantasia trial %s 1: %v, want %q in\n%s", name, err, says, out)
	}
}
