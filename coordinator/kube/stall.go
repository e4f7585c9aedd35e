package kube

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/study"
)

// hearing is the time in which every live worker sends a heartbeat: a replica that has
// listened for less does not know which pools have none.
const hearing = 10 * time.Second

// stall says why a running study makes no progress; its reason is empty if it makes some. The
// message may then say why some of its trials make none.
type stall struct{ reason, message string }

// capacity is what the workers of a pool can run, and the ids of the studies that they
// run trials of. jobs is how many of the workers create the Jobs that studies bring.
type capacity struct {
	workers, jobs, leaving, slots, free int
	runs                                map[string]bool
}

// workerPools are the workers, and the capacity of each pool. The pools are nil if too little was heard of
// the workers.
type workerPools struct {
	pools   map[string]capacity
	workers []coordinator.Worker
}

// workerPoolsOf adds the workers up by their pools.
func workerPoolsOf(workers []coordinator.Worker, listened time.Duration) workerPools {
	if listened < hearing {
		return workerPools{}
	}
	f := workerPools{pools: map[string]capacity{}, workers: workers}
	for i := range workers {
		w := &workers[i]
		c := f.pools[w.Pool]
		if c.runs == nil {
			c.runs = map[string]bool{}
		}
		for _, a := range w.Running {
			c.runs[a.Study] = true
		}
		if w.Leaving {
			c.leaving++
		} else {
			c.workers++
			if w.StudyJobs {
				c.jobs++
			}
			c.slots += w.Slots
			c.free += w.Free
		}
		f.pools[w.Pool] = c
	}
	return f
}

// stall returns why none of a study's trials runs, as far as its pool and its workers show.
func (f workerPools) stall(s *ledger.Summary) stall {
	if f.pools == nil || s.Status.State != study.Running {
		return stall{}
	}
	running := s.Status.Counts.Running
	if n, cause := lease.Waits(f.workers, s.Study.ID); n > 0 {
		waits := stall{message: lease.WaitText(n, cause)}
		if n >= running {
			waits.reason = ReasonTrialsWait
		}
		return waits
	}
	if running > 0 {
		return stall{}
	}
	pool := s.Study.Definition.Spec.Pool
	switch c := f.pools[pool]; {
	case c.workers == 0 && c.leaving > 0:
		return stall{ReasonNoWorkers, fmt.Sprintf("every worker of pool %s is leaving", pool)}
	case c.workers == 0:
		return stall{ReasonNoWorkers, fmt.Sprintf("no worker of pool %s has been heard", pool)}
	case c.jobs == 0 && s.Study.Definition.Spec.Trial.Job != nil:
		return stall{ReasonNoWorkers, fmt.Sprintf("no worker of pool %s creates the Jobs that studies bring (spec.trial.job): ask the "+
			"operator of Fantasia for a pool that does", pool)}
	case c.free == 0 && !c.runs[s.Study.ID]: // heartbeats are seconds old, trials may be shorter
		return stall{ReasonPoolBusy, fmt.Sprintf("all slots of pool %s (%d) are taken by other studies", pool, c.slots)}
	}
	return stall{}
}
