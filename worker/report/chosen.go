package report

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// chosen is the report that counts where an objective takes its best one: for all objectives
// together, since values of different reports may not be reachable at once. An objective
// without a value at the report's step, such as a model's size that is reported once, has its
// newest value by then, or else the first one after it.
type chosen struct {
	by     int       // the objective whose best report counts; -1 for none
	step   int64     // of that report
	newest []float64 // value of each objective; NaN for none
	at     []int64   // step of newest
	values []float64 // value of each objective that counts; NaN for none
	counts []bool    // the objective has a value that counts
}

func newChosen(objectives []study.Objective) chosen {
	n := len(objectives)
	return chosen{
		by:     slices.IndexFunc(objectives, func(o study.Objective) bool { return o.Take == study.TakeBest }),
		newest: slices.Repeat([]float64{math.NaN()}, n), at: slices.Repeat([]int64{math.MinInt64}, n),
		values: make([]float64, n), counts: make([]bool, n),
	}
}

// add adds a value of an objective; better says that it is the objective's best one.
func (c *chosen) add(objective int, step int64, value float64, better bool) {
	if c.by < 0 {
		return
	}
	c.newest[objective], c.at[objective] = value, step
	switch {
	case objective == c.by && better:
		c.step = step
		for i := range c.values {
			if i != c.by {
				c.values[i], c.counts[i] = c.newest[i], c.at[i] != math.MinInt64
			}
		}
	case objective != c.by && (step == c.step && c.at[c.by] != math.MinInt64 || !c.counts[objective]):
		c.values[objective], c.counts[objective] = value, true
	}
}
