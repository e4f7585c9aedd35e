package pruner

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

func ashaEntry() Entry {
	limits := careful
	limits.minSteps = 1
	return Entry{
		Name:        "asha",
		Description: "Asynchronous successive halving: at steps 1, 3, 9, 27 and so on, only the best third of the trials goes on.",
		Settings: append(limits.settings(),
			setting.Setting{
				Name: "reduction", Doc: "How many times as many steps each rung has; one in so many trials goes on.",
				Default: 3, Min: 2, Max: 1000,
			},
			setting.Setting{
				Name: "brackets", Doc: "In how many groups to compare trials; each starts one rung later. 0 takes as many as a trial has rungs.",
				Default: 1, Max: mostBrackets,
			},
			setting.Setting{Name: "once", Doc: "Judge a trial only when it reaches a rung, not at each report.", Default: false},
			setting.Setting{Name: "bootstrap", Doc: "Stop the first so many trials at each rung.", Default: 0, Max: 1e6},
		),
		rule: func(v setting.Values, d study.Direction) (rule, error) {
			a := &asha{
				first: int64(v.Int("minSteps")), last: int64(v.Int("maxSteps")), reduction: int64(v.Int("reduction")), direction: d,
				once: v.Bool("once"), bootstrap: v.Int("bootstrap"),
			}
			a.begin(v.Int("brackets"), a.last)
			return a, nil
		},
	}
}

// asha is the stopping variant of asynchronous successive halving (Li et al., A System
// for Massively Parallel Hyperparameter Tuning, MLSys 2020). A trial goes on while it is
// among the best 1/reduction of those that have reached its highest rung. It is judged
// at each report, so it can be stopped between two rungs after others have overtaken it.
type asha struct {
	first, last, reduction int64     // the first rung; no rung at or beyond last, if positive
	brackets               []bracket // none until a trial has completed, if they depend on how many steps it has
	once                   bool      // judge a trial only when it reaches a rung
	bootstrap              int
	groups                 int // as many brackets are wanted; 0 is as many as there are rungs
	total                  int // of the brackets' shares
	direction              study.Direction
}

// bracket is a group of trials that are compared with each other.
type bracket struct {
	share int
	rungs []rung
}

// rung holds the costs, in ascending order, with which trials reached it.
type rung struct {
	step  int64
	costs []float64
}

const mostBrackets = 32

// begin makes the brackets, if it is known how many steps a trial has or this is not needed. As in Optuna, the
// first rung is by default a hundredth of them, and brackets end with the one that has a single rung.
func (a *asha) begin(brackets int, last int64) {
	a.groups = brackets
	if last == 0 && (a.first == 0 || brackets == 0) {
		return
	}
	if a.first == 0 {
		a.first = max(1, (last-1)/100)
	}
	if brackets == 0 {
		for step := a.first; step <= last && brackets < mostBrackets; step *= a.reduction {
			brackets++
		}
		brackets = max(1, brackets)
	}
	for s := range brackets {
		// The shares of Hyperband (Li et al., JMLR 2018, algorithm 1).
		more := brackets - 1 - s
		share := int(math.Ceil(float64(brackets) * math.Pow(float64(a.reduction), float64(more)) / float64(more+1)))
		a.brackets = append(a.brackets, bracket{share: share})
		a.total += share
	}
}

// bracket returns a trial's bracket. The multiples of the golden ratio spread the
// trials evenly, whatever their order.
func (a *asha) bracket(number int) (index int) {
	_, part := math.Modf(float64(number) * (math.Sqrt(5) - 1) / 2)
	left := int(part * float64(a.total))
	for index = range a.brackets {
		if left -= a.brackets[index].share; left < 0 {
			break
		}
	}
	return index
}

// rung returns the k-th rung of a bracket; nil if there is none. The s-th bracket starts s rungs
// later than the first, as in Hyperband, so that a metric whose first steps mislead cannot stop all
// trials there.
func (a *asha) rung(b, k int) *rung {
	rungs := &a.brackets[b].rungs
	if k == len(*rungs) {
		step := a.first
		for range b + k {
			if step > math.MaxInt64/a.reduction {
				return nil
			}
			step *= a.reduction
		}
		if a.last > 0 && step >= a.last {
			return nil
		}
		*rungs = append(*rungs, rung{step: step})
	}
	return &(*rungs)[k]
}

// seen enters the trial into each rung that its step has reached or passed: a report may skip some.
// The cost is that at the rung, or of the first report beyond it. A trial that has diverged takes
// part in no ranks, or it would make others look better.
func (a *asha) seen(h *history) {
	h.entered = 0
	if len(a.brackets) == 0 {
		return
	}
	b, p := a.bracket(h.number), h.last()
	for {
		r := a.rung(b, len(h.rungs))
		if r == nil || p.step < r.step {
			return
		}
		h.rungs = append(h.rungs, p.cost)
		h.entered++
		if !p.diverged() {
			r.costs = slices.Insert(r.costs, sort.SearchFloat64s(r.costs, p.cost), p.cost)
		}
	}
}

// ended learns from the first completed trial how many steps a trial has. What earlier trials and those beside it
// have reported until then takes part in no ranks.
func (a *asha) ended(h *history) {
	if h.completed && len(h.points) > 0 && len(a.brackets) == 0 {
		a.begin(a.groups, h.last().step+1)
	}
}

// judge compares the cost with which the trial reached its highest rung (each new one, if once) with those of all that have
// reached it by now. The first one always goes on: there is nothing to compare it with.
func (a *asha) judge(h *history) string {
	k := len(h.rungs) - 1
	if k < 0 || a.once && h.entered == 0 {
		return ""
	}
	if p := h.last(); p.diverged() {
		return hasDiverged(p)
	}
	if !a.once {
		return a.compare(h, k)
	}
	for i := len(h.rungs) - h.entered; i <= k; i++ {
		if reason := a.compare(h, i); reason != "" {
			return reason
		}
	}
	return ""
}

// compare says why to stop a trial at its k-th rung.
func (a *asha) compare(h *history, k int) string {
	r, cost := a.rung(a.bracket(h.number), k), h.rungs[k]
	n := len(r.costs)
	if n <= a.bootstrap {
		return fmt.Sprintf("at step %d it is one of the first %d trials", r.step, a.bootstrap)
	}
	keep := max(1, n/int(a.reduction))
	better := sort.SearchFloat64s(r.costs, cost)
	if better < keep {
		return ""
	}
	return fmt.Sprintf("at step %d, %d of %d trials were better than its %g, and the best %d go on",
		r.step, better, n, a.direction.Cost(cost), keep)
}
