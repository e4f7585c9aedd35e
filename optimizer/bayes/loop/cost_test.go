package loop

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

// The term is the logarithm of 1/seconds^power but for a constant, and its gradient is that of finite differences.
func TestCostIsATimeToAPower(t *testing.T) {
	encoding, rng := optimizer.NewEncoding(optimizertest.Cube(t, 2, 0, 1)), rand.New(rand.NewPCG(4, 4))
	var list []duration.Observation
	for range 30 {
		x := []float64{rng.Float64(), rng.Float64()}
		seconds := 5 * math.Exp(2*x[0]*x[0]-math.Sin(4*x[1]))
		list = append(list, duration.Observation{Point: encoding.Decode(x), Seconds: seconds})
	}
	times, err := duration.Fit(t.Context(), encoding, list, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	const power = 0.7
	cost, origin := &Cost{Times: times, Power: power}, []float64{0.5, 0.5}
	scaled := func(x []float64) float64 { return math.Log(math.Pow(times.At(encoding.Decode(x))[0].Median(), -power)) }
	for range 20 {
		x, gradient := []float64{rng.Float64(), rng.Float64()}, []float64{3, -2}
		got, want := cost.term(gradient, x)-cost.term(nil, origin), scaled(x)-scaled(origin)
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v the term differs from that at %v by %g, want %g", x, origin, got, want)
		}
		together := []float64{1, 2}
		cost.addTerms(together, []Place{{X: origin}, {X: x}})
		if alone := []float64{1 + cost.term(nil, origin), 2 + cost.term(nil, x)}; !slices.Equal(together, alone) {
			t.Errorf("at %v and %v the terms and 1 and 2 are %v, want %v", origin, x, together, alone)
		}
		for i, before := range []float64{3, -2} {
			const h = 1e-5
			up, down := append([]float64{}, x...), append([]float64{}, x...)
			up[i] += h
			down[i] -= h
			if slope := (cost.term(nil, up) - cost.term(nil, down)) / (2 * h); math.Abs(gradient[i]-before-slope) > 1e-5 {
				t.Errorf("at %v the gradient by x%d is %g, want %g", x, i+1, gradient[i]-before, slope)
			}
		}
	}
}
