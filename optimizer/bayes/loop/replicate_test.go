package loop

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// What another evaluation of a place on the front, or behind it, is worth: the mean of the
// hypervolumes that the front has after draws of the evaluation's outcome.
func TestAgainIsTheExpectedHypervolume(t *testing.T) {
	others, reference := [][]float64{{0, 2}, {2, 0}}, []float64{3, 3}
	noise, variance := []float64{0.5, 0.1}, []float64{0.3, 0.2}
	for _, mean := range [][]float64{{1, 1}, {1.2, 1.5}, {2.1, 2.2}} {
		alone := pareto.Gain(others, mean, reference)
		by := acquisition.EHVI{Hypervolume: acquisition.NewHypervolume(others, reference), Noise: noise}
		got := math.Exp(regained(by.Value(mean, variance), alone))
		rng := optimizer.NewRand(1, 1)
		now := pareto.Hypervolume(append(others[:2:2], mean), reference)
		const draws = 200_000
		var sum, squares float64
		for range draws {
			after := make([]float64, 2)
			for k := range after {
				// The posterior mean after an outcome: its variance is v²/(v+σ²).
				outcome := mean[k] + math.Sqrt(variance[k]+noise[k])*rng.NormFloat64()
				after[k] = mean[k] + variance[k]/(variance[k]+noise[k])*(outcome-mean[k])
			}
			grown := pareto.Hypervolume(append(others[:2:2], after), reference) - now
			sum, squares = sum+grown, squares+grown*grown
		}
		want := sum / draws
		if se := math.Sqrt((squares/draws - want*want) / draws); math.Abs(got-want) > 4*se {
			t.Errorf("at %v: %v, want %v ± %v", mean, got, want, se)
		}
	}
}
