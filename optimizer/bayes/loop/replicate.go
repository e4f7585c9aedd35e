package loop

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// Again returns what another evaluation of each known place that counts is worth: the logarithm
// of how much the hypervolume of the front of posterior means is expected to grow by it. The
// evaluation moves the means at its place, and the place's part of the hypervolume is E[HVI] under
// the means that are expected, instead of the HVI of those that are known. This is the knowledge
// gradient of the hypervolume (Daulton, Balandat and Bakshy 2023, Hypervolume Knowledge Gradient)
// for a design that changes the means at its own place only. Score MUST have been called since the
// last pick.
func (l *Loop) Again() []Spot {
	of := refreshed(l.models())
	keys := make([]string, l.Evaluated)
	means := make([][]float64, l.Evaluated) // of the places that count
	var every [][]float64
	for i := range means {
		keys[i] = optimizer.KeyOf(l.known[i].X)
		if l.counting(i) {
			means[i], _ = across(of[:len(l.members())], i)
			every = append(every, means[i])
		}
	}
	if len(every) == 0 {
		return nil
	}
	reference := l.Front.reference(append(every, l.Front.picked...))
	full := l.Front.joint(every, reference)
	var list []Spot
	seen := map[string]bool{}
	for i, row := range l.rows {
		if means[i] == nil || seen[keys[i]] {
			continue
		}
		seen[keys[i]] = true
		others := make([][]float64, 0, len(every))
		for j, m := range means {
			if m != nil && keys[j] != keys[i] {
				others = append(others, m)
			}
		}
		alone := pareto.Gain(others, means[i], reference)
		by := full
		if alone > 0 {
			by = l.Front.joint(others, reference)
		}
		place := Place{l.Request.Observations[l.Data.Of[row]].At(), l.known[i].X}
		list = append(list, Spot{Place: place, Value: l.gain(by, of, i, alone)})
	}
	return list
}

// gain returns the value of evaluating the known place in a row again, given what improves on the
// others' means, and what the place adds to them now.
func (l *Loop) gain(by bayes.Joint, of []posterior, row int, alone float64) float64 {
	mean, variance := across(of[:len(l.members())], row)
	completes := l.Chance.Log(mat.NewDense(1, len(l.known[row].X), l.known[row].X))[0]
	return l.Chance.OfImprovement(regained(by.Value(mean, variance), alone), l.probable(of, row, completes)) +
		l.PriorTerm(l.known[row].X)
}

// regained returns log(E − alone) of the logarithm of an expected improvement E, which is no less
// than alone.
func regained(expected, alone float64) float64 {
	if alone == 0 {
		return expected
	}
	return expected + math.Log(max(0, -math.Expm1(math.Log(alone)-expected)))
}
