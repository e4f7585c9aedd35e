package engine

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// health counts failures and answers of the study's evaluations, by worker, and decides which
// workers get no more of its trials. Its decisions are in the study's status: a new leader must not
// decide them again, since workers remember what the last one told them.
//
// good is the number of workers in good standing. A worker is avoided only while another one is, so
// the study always keeps one that has answered.
type health struct {
	step     *step
	workers  map[string]*workerHealth
	avoided  []string // in the status, which snapshots share
	good     int      // workers in good standing
	suspects []string // at least avoidAfter failures in a row, not yet avoided
}

// workerHealth is the health of one worker.
type workerHealth struct {
	row      int // failures since its last answer
	answered bool
	avoided  bool
}

// inGoodStanding reports whether the worker shows that the study's evaluations can succeed,
// and goes on taking its trials.
func (w *workerHealth) inGoodStanding() bool {
	return w.answered && !w.avoided && w.row < avoidAfter
}

// load takes over the decisions of earlier leaders.
func (h *health) load(s *record.Status) {
	h.avoided = s.Avoided
	for _, worker := range h.avoided {
		h.exclude(worker)
	}
}

// write is the reverse of load.
func (h *health) write(s *record.Status) { s.Avoided = h.avoided }

// update changes a worker's health. All changes go through it, since it keeps good up to date.
func (h *health) update(worker string, change func(*workerHealth)) {
	w := h.workers[worker]
	if w == nil {
		w = &workerHealth{}
		h.workers[worker] = w
	}
	if w.inGoodStanding() {
		h.good--
	}
	change(w)
	if w.inGoodStanding() {
		h.good++
	}
}

// succeeded records an answer: a value, infeasible, or what a trial had reached when it was stopped
// early. Each shows that evaluations can succeed on the worker.
func (h *health) succeeded(worker string) {
	h.update(worker, func(w *workerHealth) { w.row, w.answered = 0, true })
}

// failed records a failure or a timeout. A worker is suspected once, when its row of failures
// reaches the limit.
func (h *health) failed(worker string) {
	h.update(worker, func(w *workerHealth) {
		w.row++
		if w.row == avoidAfter && !w.avoided {
			h.suspects = append(h.suspects, worker)
		}
	})
}

func (h *health) exclude(worker string) {
	h.update(worker, func(w *workerHealth) { w.avoided = true })
}

// judge returns the suspects to avoid from now on, each once: those that still fail while
// another worker is in good standing. So the last worker that has answered is never
// avoided, however often it fails.
func (h *health) judge() []string {
	var avoid, still []string
	for _, name := range h.suspects {
		switch w := h.workers[name]; {
		case w.row < avoidAfter: // it has answered since
		case h.good > 0:
			h.exclude(name)
			avoid = append(avoid, name)
		default:
			still = append(still, name)
		}
	}
	h.suspects = still
	return avoid
}

// avoidFailing tells workers to take no more attempts of the study if their
// evaluations fail avoidAfter times in a row while others succeed.
func (h *health) avoidFailing() {
	if len(h.suspects) == 0 {
		return
	}
	names := h.judge()
	if len(names) == 0 {
		return
	}
	all := slices.Concat(h.avoided, names) // snapshots share the old one
	h.avoided = all[max(0, len(all)-maxAvoided):]
	h.step.changed.status = true
	for _, name := range names {
		h.step.out.avoid(name)
	}
}

// tellAgain repeats the decisions of earlier leaders, which may have died before they told them.
func (h *health) tellAgain() {
	for _, worker := range h.avoided {
		h.step.out.avoid(worker)
	}
}
