package hebo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

// HEBO's κ is √(υ·τ), υ = ½ and τ = 2 ((2 + d/2) ln t + ln(π²/δ)), δ = 0.01, in round t.
func TestConfidence(t *testing.T) {
	for _, c := range []struct {
		evaluations, parallel, dim int
		want                       float64
	}{{8, 8, 6, 2.626}, {120, 8, 6, 4.521}, {3, 8, 6, 2.626}, {15, 1, 6, 4.521}, {15, 0, 6, 4.521}} {
		if got := confidence(c.evaluations, c.parallel, c.dim); math.Abs(got-c.want) > 1e-3 {
			t.Errorf("κ after %d evaluations by %d in %d dimensions is %v, want %v", c.evaluations, c.parallel, c.dim, got, c.want)
		}
	}
}

func ensembleOf(incumbent, noise, robust float64) *mace {
	s := &search{Loop: &loop.Loop{Main: &loop.Member{}}}
	s.Main.Known.Incumbent = incumbent
	return &mace{s: s, kappa: 2, noise: noise, robust: robust, rng: rand.New(rand.NewPCG(1, 2))}
}

// The three objectives by their definitions (Cowen-Rivers et al. 2022, section 4.2):
// the sd has the noise, and an improvement has to exceed 1e-4.
func TestScoreByDefinition(t *testing.T) {
	const variance, noise = 0.2, 0.05
	sd := math.Sqrt(variance + noise)
	for _, c := range []struct{ mean, incumbent float64 }{{0.3, 0.1}, {-0.2, 0}, {0.1, -0.3}} {
		z := (c.incumbent - 1e-4 - c.mean) / sd
		ei := sd * (distuv.UnitNormal.Prob(z) + z*distuv.UnitNormal.CDF(z))
		want := []float64{c.mean - 2*sd, -math.Log(ei), -math.Log(distuv.UnitNormal.CDF(z))}
		got := make([]float64, 3)
		ensembleOf(c.incumbent, noise, 0).score(got, c.mean, variance, 0, 0)
		if !floats.EqualApprox(got, want, 1e-12) {
			t.Errorf("scores %v, want %v", got, want)
		}
	}
}

// Robust scores have noise of sd √2·σ in the mean, drawn anew at each call.
func TestScoresAreRobust(t *testing.T) {
	const noise = 0.08
	exact, drawn := make([]float64, 3), make([]float64, 3)
	ensembleOf(0, noise, 0).score(exact, 0.5, 0.3, 0, 0)
	m := ensembleOf(0, noise, math.Sqrt(2*noise))
	bounds := make([]float64, 20000)
	for i := range bounds {
		m.score(drawn, 0.5, 0.3, 0, 0)
		bounds[i] = drawn[0]
	}
	mean, sd := stat.MeanStdDev(bounds, nil)
	if want := math.Sqrt(2 * noise); math.Abs(mean-exact[0]) > 0.02 || math.Abs(sd-want) > 0.02 {
		t.Errorf("the bound is %.3f ± %.3f, want %.3f ± %.3f", mean, sd, exact[0], want)
	}
}

// A batch of more than two has the lowest mean first, then the greatest uncertainty,
// then random points of the Pareto front.
func TestChooseFromTheFront(t *testing.T) {
	m := ensembleOf(0, 0.01, 0)
	// By mean and sd, place 0 improves most and is the most likely to improve, place 2
	// has the lowest bound, place 1 is dominated by 0, and place 3 by 2.
	mean := []float64{9, -0.1, 0.2, 0.5, 0.3} // the first is not a candidate
	variance := []float64{0, 0.1, 0.09, 0.9, 0.3}
	m.s.Places = []loop.Place{{X: []float64{0}}, {X: []float64{0.1}}, {X: []float64{0.2}}, {X: []float64{0.3}}}
	m.s.LogP, m.s.PriorTerms = make([]float64, 4), make([]float64, 4)
	free := func(taken ...int) func(int) bool { return func(i int) bool { return !slices.Contains(taken, i) } }
	if i, _, ok := m.choose(mean, variance, 1, 0, 4, free()); !ok || i != 0 {
		t.Errorf("the first is place %d, want that of the lowest mean, 0", i)
	}
	if i, _, ok := m.choose(mean, variance, 1, 1, 4, free(0)); !ok || i != 2 {
		t.Errorf("the second is place %d, want that of the greatest variance, 2", i)
	}
	picked := map[int]int{}
	for range 200 {
		i, _, ok := m.choose(mean, variance, 1, 2, 4, free())
		if !ok {
			t.Fatal("there is none")
		}
		picked[i]++
	}
	if picked[0] < 30 || picked[2] < 30 || len(picked) != 2 {
		t.Errorf("places were picked %v times, want 0 and 2, which none dominates", picked)
	}
	if _, _, ok := m.choose(mean, variance, 1, 2, 4, free(0, 1, 2, 3)); ok {
		t.Error("a place was chosen where all are taken")
	}
}

// MACE finds better points than random search.
func TestMACEOnBranin(t *testing.T) {
	f := branin()
	ensemble := newSmall(options(func(o *Options) { o.Acquisition = MACE }), effort{1000, 40, 30})
	var regret, chance []float64
	for seed := range uint64(3) {
		s := optimizertest.NewSession(t, ensemble, optimizertest.Cube(t, f.dim, f.lo, f.hi), seed)
		s.Run(32, 4, f.of)
		regret = append(regret, s.Best()-f.minimum)
		s = optimizertest.NewSession(t, random.New(), optimizertest.Cube(t, f.dim, f.lo, f.hi), seed)
		s.Run(32, 4, f.of)
		chance = append(chance, s.Best()-f.minimum)
	}
	slices.Sort(regret)
	slices.Sort(chance)
	if regret[1] > chance[1]/5 {
		t.Errorf("regrets %.3g, of random points %.3g", regret, chance)
	}
}
