package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// waits returns a worker n of whose attempts of the study wait.
func waits(w coordinator.Worker, n int) coordinator.Worker {
	w.Running = slices.Repeat(w.Running[:1], n)
	w.Waiting = []messaging.Waiting{{Cause: "no node for pod a"}}
	for i := range n {
		w.Waiting[0].Running = append(w.Waiting[0].Running, i)
	}
	return w
}

func TestStall(t *testing.T) {
	worker := func(pool string, slots, free int, leaving bool) coordinator.Worker {
		return coordinator.Worker{Heartbeat: messaging.Heartbeat{Pool: pool, Slots: slots, Free: free, Leaving: leaving}}
	}
	jobs := worker("default", 1, 1, false)
	jobs.StudyJobs = true
	mine := worker("default", 1, 0, false)
	mine.Running = []messaging.AttemptID{{Study: resource(t).ID()}}
	for _, test := range []struct {
		name     string
		workers  []coordinator.Worker
		running  int
		state    study.State
		listened time.Duration
		job      *study.Job
		reason   string
		says     string
	}{
		{name: "no worker at all", reason: ReasonNoWorkers, says: "no worker of pool default has been heard"},
		{name: "workers of another pool", workers: []coordinator.Worker{worker("gpu", 2, 2, false)}, reason: ReasonNoWorkers},
		{name: "the last worker leaves", workers: []coordinator.Worker{worker("default", 2, 0, true)}, reason: ReasonNoWorkers, says: "leaving"},
		{name: "others have every slot", workers: []coordinator.Worker{worker("default", 2, 0, false), worker("default", 3, 0, false)},
			reason: ReasonPoolBusy, says: "all slots of pool default (5)"},
		{name: "it had a slot a moment ago", workers: []coordinator.Worker{mine}},
		{name: "one slot is free", workers: []coordinator.Worker{worker("default", 2, 0, false), worker("default", 3, 1, false)}},
		{name: "no worker creates Jobs", workers: []coordinator.Worker{mine}, job: &study.Job{}, reason: ReasonNoWorkers,
			says: "no worker of pool default creates the Jobs that studies bring"},
		{name: "a worker creates Jobs", workers: []coordinator.Worker{mine, jobs}, job: &study.Job{}},
		{name: "a trial runs", running: 1},
		{name: "its only trial waits for its pod", running: 1, workers: []coordinator.Worker{waits(mine, 1)}, reason: ReasonTrialsWait,
			says: "one trial waits: no node"},
		{name: "all trials wait", running: 2, workers: []coordinator.Worker{waits(mine, 2)}, reason: ReasonTrialsWait,
			says: "2 trials wait, such as: no node"},
		{name: "one of two waits", running: 2, workers: []coordinator.Worker{waits(mine, 1)}, says: "one trial waits"},
		{name: "ended", state: study.Completed},
		{name: "nobody has listened for long", listened: hearing - 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := known(t, resource(t))
			s.Status.Counts = record.Counts{Queued: 2, Running: test.running}
			s.Study.Definition.Spec.Trial.Job = test.job
			if test.state != "" {
				s.Status.State = test.state
			}
			if test.listened == 0 {
				test.listened = hearing
			}
			got := workerPoolsOf(test.workers, test.listened).stall(s)
			if got.reason != test.reason || !strings.Contains(got.message, test.says) {
				t.Errorf("%+v, want reason %q and a message with %q", got, test.reason, test.says)
			}
		})
	}
}
