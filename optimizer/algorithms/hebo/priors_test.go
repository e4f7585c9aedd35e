package hebo

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

func number(v float64) *float64 { return &v }

// believing returns a function's space with priors around a point, whose standard
// deviation is the given share of the range.
func believing(t testing.TB, f function, around []float64, sd float64) *space.Space {
	t.Helper()
	var parameters []study.Parameter
	for i, mean := range around {
		parameters = append(parameters, study.Parameter{
			Name: fmt.Sprintf("x%d", i+1), Type: study.Float, Min: &f.lo, Max: &f.hi,
			Prior: &study.Prior{Mean: &mean, SD: number(sd * (f.hi - f.lo))},
		})
	}
	return optimizertest.Space(t, parameters, nil)
}

func mixedPriors(t testing.TB) *space.Space {
	return optimizertest.Space(t, []study.Parameter{
		{
			Name: "a", Type: study.Float, Min: number(1e-4), Max: number(1), Scale: study.Log,
			Prior: &study.Prior{Mean: number(1e-3), SD: number(0.4)},
		},
		{Name: "b", Type: study.Categorical, Values: []any{"x", "y", "z"}, Prior: &study.Prior{Weights: []float64{1, 4, 5}}},
		{Name: "c", Type: study.Float, Min: number(0), Max: number(2)},
		{
			Name: "d", Type: study.Float, Min: number(0), Max: number(1), When: map[string][]any{"b": {"x"}},
			Prior: &study.Prior{Mean: number(0.25), SD: number(0.1)},
		},
	}, nil)
}

// The initial design is distributed as the priors: normal within the range, and
// categories by their weights.
func TestDesignFollowsPriors(t *testing.T) {
	space := mixedPriors(t)
	s := optimizertest.NewSession(t, New(DefaultOptions()), space, 1)
	var a []float64
	count := map[any]float64{}
	const n = 256
	for _, b := range s.Ask(n) {
		a = append(a, math.Log10(b.Point["a"].(float64)))
		count[b.Point["b"]]++
	}
	// A scrambled Sobol sequence: far closer than independent draws would be.
	if mean, sd := stat.MeanStdDev(a, nil); math.Abs(mean+3) > 0.05 || math.Abs(sd-0.4) > 0.05 {
		t.Errorf("log10 a is %.3f ± %.3f, want -3 ± 0.4 (cut at -4)", mean, sd)
	}
	for value, want := range map[any]float64{"x": 0.1, "y": 0.4, "z": 0.5} {
		if got := count[value] / n; math.Abs(got-want) > 0.03 {
			t.Errorf("%v is drawn with frequency %.3f, want %.3f", value, got, want)
		}
	}
}

// regretOf returns the defaults' median regret over several spaces, with one trial
// each.
func regretOf(t testing.TB, f function, space *space.Space, trials, seeds int) float64 {
	t.Helper()
	regrets := make([]float64, seeds)
	for seed := range seeds {
		s := optimizertest.NewSession(t, New(DefaultOptions()), space, uint64(seed))
		s.Run(trials, 1, f.of)
		regrets[seed] = s.Best() - f.minimum
	}
	slices.Sort(regrets)
	return regrets[seeds/2]
}

// hartmannBest is Hartmann6's minimiser; hartmannWorse is far from it.
var hartmannBest, hartmannWorse = []float64{
	0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573,
}, []float64{
	0.9, 0.9, 0.05, 0.9, 0.9, 0.05,
}

func TestGoodPriorsHelpAndBadOnesAreForgotten(t *testing.T) {
	f := hartmann6()
	const trials, seeds = 20, 3
	without := regretOf(t, f, optimizertest.Cube(t, f.dim, f.lo, f.hi), trials, seeds)
	if good := regretOf(t, f, believing(t, f, hartmannBest, 0.1), trials, seeds); good > without/2 {
		t.Errorf("a median regret of %.3g with priors around the best point, %.3g without", good, without)
	}
	if bad := regretOf(t, f, believing(t, f, hartmannWorse, 0.2), 60, seeds); bad > 0.3 {
		t.Errorf("a median regret of %.3g after 60 trials with priors around a bad point", bad)
	}
}

// BenchmarkPriors reports the median log10 regret over ten seeds with priors that
// are good, bad or absent.
func BenchmarkPriors(b *testing.B) {
	type place struct {
		name   string
		around []float64
		sd     float64
	}
	for _, c := range []struct {
		f    function
		at   []place
		till []int
	}{
		{branin(), []place{{"none", nil, 0}, {"good", []float64{math.Pi, 2.275 - 5}, 0.1}, {"bad", []float64{-4, -4}, 0.1}}, []int{12, 40}},
		{hartmann6(), []place{{"none", nil, 0}, {"good", hartmannBest, 0.1}, {"bad", hartmannWorse, 0.1}}, []int{20, 80}},
	} {
		for _, p := range c.at {
			for _, trials := range c.till {
				b.Run(fmt.Sprintf("%s/%s/%d", c.f.name, p.name, trials), func(b *testing.B) {
					space := optimizertest.Cube(b, c.f.dim, c.f.lo, c.f.hi)
					if p.around != nil {
						space = believing(b, c.f, p.around, p.sd)
					}
					for range b.N {
						b.ReportMetric(math.Log10(regretOf(b, c.f, space, trials, 10)), "log10-regret")
					}
				})
			}
		}
	}
}
