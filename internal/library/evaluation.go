package library

import (
	"sync"

	"github.com/fantasia-hpo/fantasia/study"
)

// Evaluation is an evaluation of a trial that this process holds. Its fields do not change. Safe for
// concurrent use.
type Evaluation struct {
	Client          string // under whose name it is held
	Number, Attempt int
	Point           study.Point

	once sync.Once
	over chan struct{} // closed when it has ended
	why  error         // set before that
}

// NewEvaluation returns an evaluation that has not ended.
func NewEvaluation(client string, number, attempt int, point study.Point) *Evaluation {
	return &Evaluation{Client: client, Number: number, Attempt: attempt, Point: point, over: make(chan struct{})}
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
