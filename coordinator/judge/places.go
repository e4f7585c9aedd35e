package judge

import (
	"cmp"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
)

// mostTrials bounds the trials that a model is made of: its time grows with the third power of its points.
const mostTrials = 250

// placed is a trial of which the model is told.
type placed struct {
	number int
	curves.Curve
}

// places returns the trials that are in the space and their curves, by number, and the index of the
// trial that the question is of, -1 if it is not among them. Of many trials it leaves out those that
// have ended and were neither good nor recent. A pending trial runs to its end, for the model; of the one in question
// that is to be decided.
func places(q *Question, encoding *optimizer.Encoding) (numbers []int, list []curves.Curve, at int) {
	known := map[int][]curves.Report{}
	for _, c := range q.Curves {
		known[c.Trial] = c.Reports
	}
	var all []placed
	for i := range q.Problem.Observations {
		o := &q.Problem.Observations[i]
		if reports := known[o.Trial]; len(reports) > 0 {
			all = append(all, placed{o.Trial, curves.Curve{X: encoding.Encode(o.At()), Reports: reports}})
		}
	}
	for _, p := range q.Problem.Pending {
		all = append(all, placed{p.Trial, curves.Curve{X: encoding.Encode(p.Point), Reports: known[p.Trial], Runs: p.Trial != q.Trial}})
	}
	all = some(all, q.Trial)
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.number, b.number) })
	at = -1
	for i, p := range all {
		if p.number == q.Trial && len(p.Reports) > 0 {
			at = i
		}
		numbers, list = append(numbers, p.number), append(list, p.Curve)
	}
	return numbers, list, at
}

// some returns at most mostTrials of the trials: asked and those that run, half of the others the best, and
// the rest the latest.
func some(all []placed, asked int) []placed {
	if len(all) <= mostTrials {
		return all
	}
	open := func(p placed) bool { return p.Runs || p.number == asked }
	slices.SortFunc(all, func(a, b placed) int { // first those that are open, then the best
		if open(a) != open(b) {
			return map[bool]int{true: -1, false: 1}[open(a)]
		}
		return cmp.Or(cmp.Compare(least(a.Reports), least(b.Reports)), cmp.Compare(a.number, b.number))
	})
	running := slices.IndexFunc(all, func(p placed) bool { return !open(p) })
	if running < 0 {
		running = len(all)
	}
	best := min(len(all), running+max(0, mostTrials-running)/2)
	rest := slices.Clone(all[best:])
	slices.SortFunc(rest, func(a, b placed) int { return cmp.Compare(b.number, a.number) })
	return append(slices.Clone(all[:best]), rest[:max(0, min(len(rest), mostTrials-best))]...)
}
