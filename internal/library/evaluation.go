package library

import (
	"fmt"
	"sync"

	"github.com/fantasia-hpo/fantasia/study"
)

// Evaluation is an evaluation of a trial that this process holds. Its fields do not change. Safe for
// concurrent use.
type Evaluation struct {
	Client          string // under whose name it is held
	Number, Attempt int
	Point           study.Point

	mu    sync.Mutex
	steps map[string]int // the last step of each metric that was reported

	once sync.Once
	over chan struct{} // closed when it has ended
	why  error         // set before that
}

// NewEvaluation returns an evaluation that has not ended.
func NewEvaluation(client string, number, attempt int, point study.Point) *Evaluation {
	return &Evaluation{Client: client, Number: number, Attempt: attempt, Point: point, over: make(chan struct{})}
}

// Step begins a report of a metric. The error says why its step is not taken: steps are counted from 0 and grow.
func (e *Evaluation) Step(metric string, step int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, reported := e.steps[metric]
	switch {
	case step < 0:
		return fmt.Errorf("step %d of %q; want one from 0", step, metric)
	case reported && step <= last:
		return fmt.Errorf("step %d of %q after step %d; want steps that grow", step, metric, last)
	case e.steps == nil:
		e.steps = map[string]int{}
	}
	e.steps[metric] = step
	return nil
}

// End ends the evaluation. Only the first call counts.
func (e *Evaluation) End(why error) {
	e.once.Do(func() {
		e.why = why
		close(e.over)
	})
}

// Over returns a channel that is closed when the evaluation has ended.
func (e *Evaluation) Over() <-chan struct{} { return e.over }

// Ended returns why the evaluation has ended; nil if it has not.
func (e *Evaluation) Ended() error {
	select {
	case <-e.over:
		return e.why
	default:
		return nil
	}
}
