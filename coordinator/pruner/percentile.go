package pruner

import (
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

var fewestTrials = setting.Setting{
	Name: "minCompared", Doc: "Stop no trial at a step that fewer completed trials have reached.", Default: 1, Min: 1, Max: 1e6,
}

func medianEntry() Entry {
	return Entry{
		Name:        "median",
		Description: "Stops a trial whose best value is worse than the median of the completed trials at its step.",
		Settings:    append(careful.settings(), fewestTrials),
		rule: func(v setting.Values, d study.Direction) (rule, error) {
			return &percentile{keep: 50, fewest: v.Int("minCompared"), direction: d}, nil
		},
	}
}

func percentileEntry() Entry {
	return Entry{
		Name:        "percentile",
		Description: "Stops a trial whose best value is not among the best quarter of the completed trials' values at its step.",
		Settings: append(careful.settings(), fewestTrials,
			setting.Setting{Name: "keep", Doc: "How much of the trials goes on, in percent.", Default: 25.0, Max: 100}),
		rule: func(v setting.Values, d study.Direction) (rule, error) {
			return &percentile{keep: v.Float("keep"), fewest: v.Int("minCompared"), direction: d}, nil
		},
	}
}

// percentile stops a trial whose least cost exceeds a percentile of the costs that
// completed trials had at its step (Golovin et al., Google Vizier, KDD 2017, for the
// median; Optuna's PercentilePruner).
type percentile struct {
	keep      float64 // percent
	fewest    int     // values of others at a step that are compared
	direction study.Direction
	completed []*history
	costs     []float64 // scratch
}

func (p *percentile) seen(*history) {}

func (p *percentile) ended(h *history) {
	if h.completed {
		p.completed = append(p.completed, h)
	}
}

// judge compares the trial's best cost so far with the others' costs at its step, as Optuna does: a
// trial that was good once is kept while it recovers.
func (p *percentile) judge(h *history) string {
	mine := h.last()
	if mine.diverged() {
		return hasDiverged(mine)
	}
	p.costs = p.costs[:0]
	for _, other := range p.completed {
		if at, ok := other.at(mine.step); ok && !at.diverged() {
			p.costs = append(p.costs, at.cost)
		}
	}
	if len(p.costs) < p.fewest {
		return ""
	}
	slices.Sort(p.costs)
	cut := quantile(p.costs, p.keep/100)
	if !(mine.best > cut) { // also if there is nothing to compare with
		return ""
	}
	return fmt.Sprintf("at step %d its best value %g is worse than %g, which the best %g%% of %d completed trials reach",
		mine.step, p.direction.Cost(mine.best), p.direction.Cost(cut), p.keep, len(p.costs))
}

// quantile returns the q-quantile of sorted values by linear interpolation, as NumPy
// does; NaN if there are none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	below, part := math.Modf(q * float64(len(sorted)-1))
	i := int(below)
	if part == 0 {
		return sorted[i]
	}
	low, high := sorted[i], sorted[i+1]
	if part >= 0.5 {
		return high - (high-low)*(1-part)
	}
	return low + (high-low)*part
}
