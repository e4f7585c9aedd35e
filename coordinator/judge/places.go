package judge

import (
	"cmp"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
)

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
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.number, b.number) })
	var every []curves.Curve
	for _, p := range all {
		every = append(every, p.Curve)
	}
	at = -1
	for _, i := range curves.Select(every, func(i int) bool { return all[i].Runs || all[i].number == q.Trial }) {
		if p := all[i]; p.number == q.Trial && len(p.Reports) > 0 {
			at = len(list)
		}
		numbers, list = append(numbers, all[i].number), append(list, all[i].Curve)
	}
	return numbers, list, at
}
