//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
)

// TestHandBack deletes busy workers of a pool that has no free slot: another slot takes
// each trial over as soon as there is one, and not after half a minute.
func TestHandBack(t *testing.T) {
	inTurn(t)
	c := newCluster(t)
	c.startWitness()
	c.chart("install", fmt.Sprintf(`
image: {tag: %[1]q}
nats: {bundled: {persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
coordinator: {replicas: 1}
poolDefaults: {drainSeconds: 2, env: [{name: WITNESS, value: "http://witness:8080"}]}
pools: {default: {image: "%[2]se2e:%[1]s", allowStudyCommands: true, replicas: 2}}
`, c.tag, repository))
	c.create(studyFile("busy", "default", 16, 2, 10))
	c.ended(2*time.Minute, "busy", 2)
	for range 3 {
		c.delete(c.busy("busy"), false)
		c.settled(time.Minute, "worker", 2, c.tag)
	}
	c.completed(8*time.Minute, "busy")
	c.compare("busy", 16, c.evaluations("busy"))
	handed := 0
	for _, trial := range c.trials("busy") {
		for i, a := range trial.GetAttempts() {
			if a.GetState() != fantasiav1.AttemptState_ATTEMPT_STATE_HANDED_BACK {
				continue
			}
			handed++
			waited := trial.GetAttempts()[i+1].GetClaimTime().AsTime().Sub(a.GetEndTime().AsTime())
			t.Logf("trial %d waited %.1fs for another slot", trial.GetNumber(), waited.Seconds())
			if waited > 25*time.Second {
				t.Errorf("trial %d waited %v for another slot, want it to start with the next free one", trial.GetNumber(), waited)
			}
		}
	}
	if handed == 0 {
		t.Error("no trial was handed back")
	}
}
