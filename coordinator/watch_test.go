package coordinator

import (
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// The studies that share a pool are told its capacity again, and no others: their engines
// do not see which slots the other ones take.
func TestStudiesThatShareAPoolAreTold(t *testing.T) {
	workers := lease.NewWorkers(time.Minute)
	workers.Beat(messaging.Heartbeat{Worker: "w", Instance: "1", Pool: study.DefaultPool, Slots: 1}, time.Now())
	in := func(id, pool string, state study.State) *run {
		spec := study.Spec{Pool: pool, Trial: study.TrialTemplate{Command: []string{"true"}}}
		return &run{spec: record.Study{ID: id, Definition: study.Study{Spec: spec}}, engine: &engine.Engine{}, status: record.Status{State: state}}
	}
	shared, other := in("a", "shared", study.Running), in("b", "shared", study.Running)
	alone, ended := in("c", "alone", study.Running), in("d", "alone", study.Completed)
	w := &watch{workers: workers, studies: &studies{loaded: map[string]*run{"a": shared, "b": other, "c": alone, "d": ended}}}
	for _, r := range w.studies.loaded {
		w.changed(r)
	}
	w.retellCapacity()
	if !w.changed(shared) || !w.changed(other) {
		t.Error("a study that shares its pool is not told")
	}
	if w.changed(alone) {
		t.Error("a study that runs alone in its pool is told")
	}
}
