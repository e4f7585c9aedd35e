package pruner

import (
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

func thresholdEntry() Entry {
	return Entry{
		Name:        "threshold",
		Description: "Stops a trial that reports a value outside a range. It compares no trials, so no limit is on by default.",
		Settings: append(limits{maxProgress: 1, patience: impatient}.settings(),
			setting.Setting{Name: "lower", Doc: "Stop a trial that reports less.", Default: math.Inf(-1), Min: math.Inf(-1), Max: math.Inf(1)},
			setting.Setting{Name: "upper", Doc: "Stop a trial that reports more.", Default: math.Inf(1), Min: math.Inf(-1), Max: math.Inf(1)}),
		rule: func(v setting.Values, d study.Direction) (rule, error) {
			t := &threshold{lower: v.Float("lower"), upper: v.Float("upper"), direction: d}
			if math.IsInf(t.lower, -1) && math.IsInf(t.upper, 1) {
				return nil, &setting.Error{Name: "upper", Value: "nothing", Reason: "a number for upper, for lower, or for both"}
			}
			if t.lower > t.upper {
				return nil, &setting.Error{Name: "lower", Value: t.lower, Reason: "a number that is not more than upper"}
			}
			return t, nil
		},
	}
}

// threshold stops a trial whose value is outside a range or not finite (Optuna's
// ThresholdPruner, which lets an infinite value go on where the range has no bound).
type threshold struct {
	lower, upper float64
	direction    study.Direction
}

func (*threshold) seen(*history)  {}
func (*threshold) ended(*history) {}

func (t *threshold) judge(h *history) string {
	p := h.last()
	value := t.direction.Cost(p.cost)
	switch {
	case p.diverged():
		return hasDiverged(p)
	case value < t.lower:
		return fmt.Sprintf("its %g at step %d is less than %g", value, p.step, t.lower)
	case value > t.upper:
		return fmt.Sprintf("its %g at step %d is more than %g", value, p.step, t.upper)
	}
	return ""
}
