package engine

// slots is what the study's pool can take now, as far as the leader knows: the last heartbeats said
// it, and the claims and results since then have changed it. So free is an estimate. If it is too
// high, an attempt waits in its queue; the next Capacity corrects it.
//
// If clients evaluate the study's trials, a seeker that misses a trial is a free slot, and the pool
// counts for nothing.
type slots struct {
	spec        *specification
	trials      *trials
	seekers     *seekers
	evaluations *durations

	total, free int
	paused      bool // nothing is begun: see Capacity.Hold
}

// set takes over what heartbeats say.
func (s *slots) set(ev Capacity) {
	s.total, s.free, s.paused = max(0, ev.Slots), max(0, ev.Free), ev.Hold
}

// claim counts an attempt that a worker has claimed, until the next Capacity.
func (s *slots) claim() { s.free = max(0, s.free-1) }

// release counts the end of a claimed attempt, until the next Capacity.
func (s *slots) release() { s.free++ }

// restart counts no slot as free: the process of the workers has just begun again.
func (s *slots) restart() { s.free = 0 }

// vacant returns how many more attempts may be queued now: one for each free slot that no queued
// attempt waits for, and a few ahead of free slots in the cases that demand lists.
func (s *slots) vacant() int {
	if s.paused {
		return 0
	}
	if s.spec.byClients() {
		return s.seekers.missing()
	}
	busy := s.trials.counts.Running
	n := min(s.free, max(0, s.total-busy)) - s.trials.counts.Queued
	mean, known := s.evaluations.mean()
	shared := s.total > s.free+busy
	if s.total == 0 || shared || known && mean < lookAheadBelow {
		n += max(1, s.total/8)
	}
	return n
}

// openings returns how many trials can be made now, within parallelism and budget.
func (s *slots) openings() int {
	n := s.vacant()
	if s.spec.on(safetyParallel) {
		n = min(n, s.trials.vacancies())
	}
	return max(0, min(n, s.trials.remaining()))
}
