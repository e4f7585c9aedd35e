package pruner

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

// Model is the name of the rule that asks a model.
const Model = "model"

func modelEntry() Entry {
	return Entry{
		Name: Model,
		Description: "Stops a trial that a model of all trials' parameters and reports expects to end worse than a new trial. " +
			"Set maxSteps if you know it.",
		Settings: limits{maxProgress: 0.9, protect: 3, patience: impatient}.settings(),
		rule:     func(setting.Values, study.Direction) (rule, error) { return &modelled{}, nil },
	}
}

const (
	// FewestReports make a model.
	FewestReports = 8
	// FewestEnds completed trials and more, of them the latest mostEnds, say whether reports have to do with results.
	FewestEnds, mostEnds = 5, 50
	// LeastOrder is the least rank correlation (Kendall's τ) of the best reports and the results of completed
	// trials with which trials are stopped.
	LeastOrder = 0.3
	// Of fewer completed trials, but no fewer than fewestOpposed, a correlation of mostOpposed or less says that reports
	// improve where results get worse, as those of an accuracy beside a loss: trials that are stopped by them mislead the search
	// for good.
	fewestOpposed, mostOpposed = 3, -0.6
)

// modelled has a trial judged by a model when its curve reaches a further step of a grid, since in between
// little is learnt. It stops no trial itself but one that has diverged.
type modelled struct {
	grid      []int64
	reports   int // that are finite, of all trials
	completed []*history
}

func (m *modelled) seen(h *history) {
	if !h.last().diverged() {
		m.reports++
	}
}

func (m *modelled) ended(h *history) {
	if h.completed {
		m.completed = append(m.completed, h)
	}
}

func (*modelled) judge(h *history) string {
	if h.last().diverged() {
		return hasDiverged(h.last())
	}
	return ""
}

// asks implements asks. At the last step nothing is left to save.
func (m *modelled) asks(h *history, last int64) bool {
	now := h.last()
	if last <= 0 || now.step >= last || now.diverged() || m.reports < FewestReports {
		return false
	}
	if len(m.grid) == 0 || m.grid[len(m.grid)-1] != last {
		m.grid = curves.Grid(last)
	}
	before := int64(math.MinInt64)
	if len(h.points) > 1 {
		before = h.points[len(h.points)-2].step
	}
	reached := slices.ContainsFunc(m.grid, func(step int64) bool { return before < step && step <= now.step })
	return reached && m.order() >= LeastOrder
}

// order is Order of the latest completed trials. It is 1 if too few have completed.
func (m *modelled) order() float64 {
	var known []*history
	for _, h := range m.completed {
		if len(h.points) > 0 && study.Finite(h.final) && study.Finite(h.least) {
			known = append(known, h)
		}
	}
	slices.SortFunc(known, func(a, b *history) int { return cmp.Compare(a.number, b.number) })
	known = known[max(0, len(known)-mostEnds):]
	if len(known) < fewestOpposed {
		return 1
	}
	best, results := make([]float64, len(known)), make([]float64, len(known))
	for i, h := range known {
		best[i], results[i] = h.least, h.final
	}
	order := Order(best, results)
	if len(known) < FewestEnds && order > mostOpposed {
		return 1
	}
	return order
}

// Order returns the rank correlation of the best reports and the results of trials: 1 if the order is the same, -1 if it is the
// opposite.
func Order(best, results []float64) float64 {
	sum, pairs := 0, 0
	for i := range best {
		for k := range i {
			sum += cmp.Compare(best[i], best[k]) * cmp.Compare(results[i], results[k])
			if best[i] != best[k] && results[i] != results[k] {
				pairs++
			}
		}
	}
	if pairs == 0 {
		return 0
	}
	return float64(sum) / float64(pairs)
}

// Curve is what a trial has reported. Nobody changes its reports.
type Curve struct {
	Trial   int
	Reports []curves.Report
}

// Curves implements Pruner. It copies the curves of those trials that have reported since the last call: the
// leader's loop calls it for each question, and most of a study's trials have ended.
func (g *limited) Curves() []Curve {
	list := make([]Curve, 0, len(g.trials))
	for _, number := range slices.Sorted(maps.Keys(g.trials)) {
		h := g.trials[number]
		if len(h.points) == 0 {
			continue
		}
		if h.copied == nil {
			h.copied = make([]curves.Report, len(h.points))
			for i, p := range h.points {
				h.copied[i] = curves.Report{Step: p.step, Cost: p.cost}
			}
		}
		list = append(list, Curve{number, h.copied})
	}
	return list
}

// Ends implements Pruner.
func (g *limited) Ends(cost float64) (completed []int, better int, same bool) {
	same = true
	for _, number := range slices.Sorted(maps.Keys(g.trials)) {
		if h := g.trials[number]; h.completed && len(h.points) > 0 {
			completed = append(completed, number)
			if h.least < cost {
				better++
			}
			same = same && (h.final == h.least || h.final == h.last().cost)
		}
	}
	return completed, better, same && len(completed) > 0
}
