//go:build e2e

package kubejob

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// TestPhasesOfARealJob has a Job wait in a queue and then run for a known time: neither the queue nor the cluster's own
// work counts as the program's time.
func TestPhasesOfARealJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const queued, program = 3 * time.Second, 4 * time.Second
	o := c.o
	o.Template = []byte(strings.Replace(c.jobTemplate("--steps=20", "--pause=200ms"), "spec:\n", "spec:\n  suspend: true\n", 1))
	r, _ := c.runner(t, o)
	a := trial(1)
	go func() {
		if !backoff.Sleep(t.Context(), queued) {
			return
		}
		if _, err := c.kube.BatchV1().Jobs(o.Namespace).Patch(t.Context(), JobName(a), types.MergePatchType,
			[]byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}()
	started := time.Now()
	e, _ := evaluateOnce(t.Context(), t, r, a)
	ended := time.Now()
	check(t, e, messaging.OutcomeCompleted, "", "")
	took, names := map[string]time.Duration{}, ""
	for _, p := range e.Stages.Phases(started, ended) {
		took[p.Name] = p.End.Sub(p.Start)
		names += p.Name + " "
	}
	t.Logf("the evaluation took %v: %v", ended.Sub(started), took)
	if names != "admit schedule prepare start run finish " {
		t.Errorf("the phases are %s", names)
	}
	if admit := took[messaging.PhaseAdmit]; admit < queued-time.Second || admit > queued+2*time.Second {
		t.Errorf("the Job was admitted after %v, want %v", admit, queued)
	}
	if run := took[messaging.PhaseRun]; run < program-time.Second || run > program+2*time.Second {
		t.Errorf("the program ran for %v, want %v", run, program)
	}
	found := map[string]string{}
	for _, attribute := range e.Attributes {
		found[string(attribute.Key)] = attribute.Value.AsString()
	}
	if found["k8s.namespace.name"] != o.Namespace || found["k8s.job.name"] != JobName(a) || found["k8s.node.name"] == "" ||
		!strings.HasPrefix(found["k8s.pod.name"], JobName(a)) {
		t.Errorf("the attributes are %v", found)
	}
}
