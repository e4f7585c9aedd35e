package engine

import "fmt"

// health counts failures and answers of the study's evaluations, by worker.
type health struct {
	workers  map[string]*workerHealth
	answered int      // workers that have answered at least once
	suspects []string // at least avoidAfter failures in a row, not yet avoided
	avoided  []string
}

// workerHealth is the health of one worker.
type workerHealth struct {
	row      int // failures since its last answer
	answered bool
	avoided  bool
}

func newHealth() health { return health{workers: map[string]*workerHealth{}} }

// of returns a worker's health.
func (h *health) of(worker string) *workerHealth {
	w := h.workers[worker]
	if w == nil {
		w = &workerHealth{}
		h.workers[worker] = w
	}
	return w
}

// succeeded records an answer: a value, or infeasible.
func (h *health) succeeded(worker string) {
	w := h.of(worker)
	w.row = 0
	if !w.answered {
		w.answered = true
		h.answered++
	}
}

// failed records a failure or a timeout.
func (h *health) failed(worker string) {
	w := h.of(worker)
	w.row++
	if w.row == avoidAfter && !w.avoided {
		h.suspects = append(h.suspects, worker)
	}
}

// judge returns the suspects to avoid from now on, each once: those that still fail
// while another worker has answered.
func (h *health) judge() []string {
	var avoid, still []string
	for _, name := range h.suspects {
		w := h.workers[name]
		others := h.answered
		if w.answered {
			others--
		}
		switch {
		case w.row < avoidAfter: // it has answered since
		case others > 0:
			w.avoided = true
			avoid = append(avoid, name)
		default:
			still = append(still, name)
		}
	}
	h.suspects = still
	h.avoided = append(h.avoided, avoid...)
	return avoid
}

// avoidFailing tells workers to take no more attempts of the study if their
// evaluations fail avoidAfter times in a row while others succeed.
func (e *Engine) avoidFailing() {
	if len(e.workers.suspects) == 0 {
		return
	}
	for _, name := range e.workers.judge() {
		e.avoid(name)
	}
}

// avoid tells one worker to take no more attempts of the study.
func (e *Engine) avoid(worker string) {
	e.out.Avoids = append(e.out.Avoids, Avoid{
		Worker: worker,
		Reason: fmt.Sprintf("%d evaluations failed in a row on this worker while others succeed", avoidAfter),
	})
}
