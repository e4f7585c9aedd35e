package fantasia

import (
	"fmt"
	"sync/atomic"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/study"
)

// Trial is a trial that is being evaluated. Read its values with [Param.Of]. Safe for concurrent
// use.
type Trial struct {
	study  *Study
	held   *library.Evaluation
	spends atomic.Int64 // the calls of Spend
}

// trial returns an evaluation of a binding as a Trial.
func (s *Study) trial(held *library.Evaluation, err error) (*Trial, error) {
	if err != nil {
		return nil, err
	}
	return &Trial{study: s, held: held}, nil
}

// tell ends a trial.
func (s *Study) tell(t *Trial, found library.Measured, err error) error {
	if t == nil || t.held == nil {
		return fmt.Errorf("%w: Tell of a trial that is nil; want one that Ask returned", ErrInvalid)
	}
	return s.led().Tell(t.held, found, err)
}

// measured returns the only value of an evaluation.
func measured(value float64) library.Measured { return library.Measured{Values: study.Values{value}} }

func (t *Trial) point() Point { return Point{t.study.space, t.held.Point} }

// Number returns the trial's number, counted from 1.
func (t *Trial) Number() int { return t.held.Number }

// Values returns the trial's values by name: float64, int64, string or bool. Do not change the
// map.
func (t *Trial) Values() map[string]any { return t.held.Point }

// Seed returns a seed for the evaluation's own random numbers: the same whenever the trial is
// evaluated, below 2^31.
func (t *Trial) Seed() uint64 { return engine.TrialSeed(t.study.seed, t.held.Number) }

// Report says what value the objective has reached at a step, which is counted from 0 and must grow from
// report to report; otherwise the error wraps ErrInvalid, and the report is left out. NaN and infinity say
// that the evaluation diverges. The reports are the trial's curve, by which [EarlyStopping] decides. Of several objectives, it is that of
// EarlyStopping.Metric, or else the first; [Criterion.Report] is for the others. The error wraps
// ErrStopped if the trial should stop early, and ErrEnded if it has ended, for example because the
// study has: return it from the objective.
func (t *Trial) Report(step int, value float64) error {
	return t.report(t.study.reported, step, value)
}

// report is Report for a metric.
func (t *Trial) report(metric string, step int, value float64) error {
	if err := t.held.Step(metric, step); err != nil {
		if ended := t.held.Ended(); ended != nil { // nothing is left to be reported, at whatever step
			return ended
		}
		return fmt.Errorf("%w: trial %d: %w", ErrInvalid, t.Number(), err)
	}
	return t.study.binding.Report(t.held, metric, step, value)
}

// Spend says what the evaluation has cost so far, in the unit of [Options.MaxCost]: the sum, not what was added since the last
// call. The largest sum counts, also of an evaluation that fails or is stopped early. The errors are those of Report; the error
// wraps ErrInvalid, too, if the study has no cost, or if the sum is negative or not finite.
func (t *Trial) Spend(sum float64) error {
	switch {
	case t.study.cost == "":
		return fmt.Errorf("%w: the study of trial %d has no cost but time: set Options.Cost or Options.MaxCost", ErrInvalid, t.Number())
	case !(sum >= 0) || !study.Finite(sum):
		return fmt.Errorf("%w: trial %d: a cost of %v; want a finite number from 0 on", ErrInvalid, t.Number(), sum)
	}
	return t.report(t.study.cost, int(t.spends.Add(1)-1), sum)
}

// ShouldStop reports whether the trial should stop early, or has ended. The objective then
// returns ErrStopped.
func (t *Trial) ShouldStop() bool { return t.study.binding.Instruction(t.held) != nil }
