package coordinator

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/disk"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
)

// changed reports whether a study's pool has changed since the last call. The pool has a version that grows with
// each heartbeat; a study that is to be told in any case gets the version -1.
func (l *leader) changed(r *studies.Study) bool {
	before := r.CapacityTold
	r.CapacityTold = l.workers.Version(r.Pool())
	return r.CapacityTold != before
}

// tellCapacity tells a study's engine about its pool if that has changed, and not in each round: between two
// heartbeats the engine counts free slots itself, by the claims and results of its study. See engine.Capacity.
func (l *leader) tellCapacity(r *studies.Study, now time.Time) {
	if l.changed(r) {
		slots, free := l.workers.Slots(r.Pool(), r.Avoided)
		l.studies.Step(r, engine.Capacity{At: now, Slots: slots, Free: free, Hold: l.spaceLacked})
	}
}

// checkSpace makes every study be told its capacity again if there is space in etcd again, or no
// longer. Then no attempts are begun; open ones go on, so that their results still find space.
func (l *leader) checkSpace() {
	if lacking := disk.Full(l.c.space.Now()); lacking != l.spaceLacked {
		l.spaceLacked = lacking
		l.workers.TouchAll()
	}
}

// retellCapacity makes the studies that share a pool be told its capacity again. An engine
// estimates the free slots by the claims and results of its own study. So it does not see that
// another one has taken a slot, and a worker whose slots are all taken again at once sends no
// heartbeat that says so before its interval is over.
func (l *leader) retellCapacity() {
	running := map[string]int{}
	for r := range l.studies.Loaded() {
		if !r.Running() || r.ByClients() {
			continue
		}
		if running[r.Pool()]++; running[r.Pool()] == 2 {
			l.workers.Touch(r.Pool())
		}
	}
}
