package fantasia

import (
	"sync"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
)

// Trial is a trial that is being evaluated. Read its values with [Param.Of]. Safe for concurrent
// use.
type Trial struct {
	lead            leader
	client          string // under whose name it is held
	number, attempt int
	seed            uint64 // of the study
	at              Point
	judged          *aims

	once sync.Once
	over chan struct{} // closed when the trial has ended
	why  error         // set before that
}

func (t *Trial) point() Point { return t.at }

// end ends the trial. Only the first call counts.
func (t *Trial) end(why error) {
	t.once.Do(func() {
		t.why = why
		close(t.over)
	})
}

// Number returns the trial's number, counted from 1.
func (t *Trial) Number() int { return t.number }

// Values returns the trial's values by name: float64, int64, string or bool. Do not change the
// map.
func (t *Trial) Values() map[string]any { return t.at.Values() }

// Seed returns a seed for the evaluation's own random numbers: the same whenever the trial is
// evaluated, below 2^31.
func (t *Trial) Seed() uint64 { return engine.TrialSeed(t.seed, t.number) }

// ended returns why the trial has ended; nil if it has not.
func (t *Trial) ended() error {
	select {
	case <-t.over:
		return t.why
	default:
		return nil
	}
}

// Report says what value the objective has reached at a step, which must grow from report to
// report: the trial's curve, by which [EarlyStopping] decides. Of several objectives, it is that of
// EarlyStopping.Metric, or else the first; [Criterion.Report] is for the others. The error wraps
// ErrStopped if the trial should stop early, and ErrEnded if it has ended, for example because the
// study has: return it from the objective.
func (t *Trial) Report(step int, value float64) error {
	return t.lead.report(t, t.lead.metric(), step, value)
}

// ShouldStop reports whether the trial should stop early, or has ended. The objective then
// returns ErrStopped.
func (t *Trial) ShouldStop() bool { return t.lead.instruction(t) != nil }
