package coordinator

import (
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/coordinator/studies/studiestest"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// The studies that share a pool are told its capacity again, and no others: their engines
// do not see which slots the other ones take.
func TestStudiesThatShareAPoolAreTold(t *testing.T) {
	workers := lease.NewWorkers(time.Minute)
	workers.Beat(messaging.Heartbeat{Worker: "w", Instance: "1", Pool: study.DefaultPool, Slots: 1}, time.Now())
	all, _ := studiestest.New(t)
	l := &leader{workers: workers, studies: all}
	in := func(id, pool string) *studies.Study {
		return studiestest.Start(t, all, newStudy(id, 10, 1, func(s *study.Spec) { s.Pool = pool }), time.Now())
	}
	shared, other, alone, ended := in("a", "shared"), in("b", "shared"), in("c", "alone"), in("d", "alone")
	ended.Status.State = study.Completed
	for r := range l.studies.Loaded() {
		l.changed(r)
	}
	l.retellCapacity()
	if !l.changed(shared) || !l.changed(other) {
		t.Error("a study that shares its pool is not told")
	}
	if l.changed(alone) {
		t.Error("a study that runs alone in its pool is told")
	}
}
