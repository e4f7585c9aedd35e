package loop

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// The moments of a mixture of a number and a normal distribution, against those of
// draws from it.
func TestMixtureSD(t *testing.T) {
	rng := optimizer.NewRand(1, 2)
	const p, value, mean, sd = 0.3, 2.0, -1.0, 0.7
	draws := make([]float64, 200_000)
	for i := range draws {
		draws[i] = value
		if rng.Float64() > p {
			draws[i] = mean + sd*rng.NormFloat64()
		}
	}
	if got, want := MixtureSD(p, value, mean, sd), stat.StdDev(draws, nil); math.Abs(got-want) > 0.01 {
		t.Errorf("%v, of draws %v", got, want)
	}
	// A value with probability 0 does not count, however far away it is.
	if got := MixtureSD(0, math.MaxFloat64, -math.MaxFloat64, sd); got != sd {
		t.Errorf("with probability 0: %v, want %v", got, sd)
	}
}
