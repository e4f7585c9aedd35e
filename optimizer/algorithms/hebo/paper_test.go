package hebo

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func paper(t testing.TB, change func(*Options)) Options {
	o := PaperFromSettings(optimizertest.Defaults(t, PaperSettings()))
	change(&o)
	return o
}

func TestPaperConformance(t *testing.T) {
	optimizertest.Run(t, func() optimizer.Optimizer {
		return newSmall(paper(t, func(*Options) {}), effort{candidates: 1000, population: 20, generations: 10})
	})
}

// The initial design has one more trial than parameters, whatever their encoding and the
// budget.
func TestPaperInitialDesign(t *testing.T) {
	for dim, want := range map[int]int{1: 2, 5: 6, 12: 13} {
		s := optimizertest.NewSession(t, newSmall(paper(t, func(*Options) {}), effort{100, 10, 2}), optimizertest.Cube(t, dim, 0, 1), 1)
		s.Problem.MaxTrials = 20
		for trial := 1; trial <= want+1; trial++ {
			b := s.Ask(1)[0]
			s.Tell(trial, bowlOf(b.Point))
			if design := b.Source == optimizer.SourceDesign; design != (trial <= want) {
				t.Errorf("%d parameters: trial %d is from %q; the design has %d trials", dim, trial, b.Source, want)
			}
		}
	}
}

// noisyLine returns 30 noisy evaluations of a slope; the best outcome, the 19th, was
// lucky: the next one is at the same place.
func noisyLine(t *testing.T) *optimizer.Problem {
	t.Helper()
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize, MaxTrials: 60, Parallelism: 1, First: 31}
	rng := optimizer.NewRand(1, 1)
	for i := range 30 {
		x := (float64(i) + 0.5) / 30
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": x}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{x + 0.3*rng.NormFloat64() + 5},
		})
	}
	p.Observations[18].Values = study.Values{4.3}
	p.Observations[19].Point, p.Observations[19].Values = p.Observations[18].Point, study.Values{6.5}
	return p
}

// Of MACE, the threshold is the posterior mean at the best observation, though the mean is
// lower elsewhere, and pending points leave the model as it is.
func TestPaperThreshold(t *testing.T) {
	p := noisyLine(t)
	p.Pending = []optimizer.Pending{{Trial: 31, Point: study.Point{"x1": 0.5}}}
	p.First = 32
	o := proposer{paper(t, func(*Options) {}), effort{100, 10, 2}, nil}
	asked := false
	guarded := optimizer.Guard(proposeFunc(func(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
		asked = true
		d := surrogate.Observe(r.Problem, r.Encoding, o.options.Surrogate)
		m, err := surrogate.Fit(ctx, d, o.options.Surrogate, nil, r.Rand)
		if err != nil {
			return nil, nil, err
		}
		s := o.newSearch(ctx, r, m, nil, nil, readMemory(nil, 0))
		mean, _ := m.GP.Posterior(d.X)
		if got := s.Main.Known.Incumbent; math.Abs(got-mean[18]) > 1e-9 || got <= slices.Min(mean) {
			t.Errorf("the threshold is %v; the mean at the best observation is %v, and the lowest one %v", got, mean[18], slices.Min(mean))
		}
		pending := mat.NewDense(1, 1, []float64{0.5})
		_, before := m.GP.Posterior(pending)
		if _, after := s.Main.Fantasies.Posterior(pending); math.Abs(after[0]-before[0]) > 1e-12 {
			t.Errorf("a pending point changes the variance from %v to %v", before[0], after[0])
		}
		return nil, nil, nil
	}))
	if _, _, err := guarded.Suggest(t.Context(), p, nil, 1, optimizer.NewRand(1, 1)); err != nil || !asked {
		t.Fatalf("asked: %v, error: %v", asked, err)
	}
}

// Each part of the ablation can be left out, and the optimiser still finds a minimum.
func TestPaperParts(t *testing.T) {
	for name, o := range map[string]Options{
		"all":          paper(t, func(*Options) {}),
		"no warp":      paper(t, func(o *Options) { o.Surrogate.Warp = false }),
		"no transform": paper(t, func(o *Options) { o.Surrogate.Transform = false }),
		"logei":        alone(t, true),
		"exact logei":  alone(t, false),
		"not robust":   paper(t, func(o *Options) { o.Robust = false }),
	} {
		s := optimizertest.NewSession(t, newSmall(o, effort{500, 40, 30}), optimizertest.Cube(t, 2, 0, 1), 3)
		s.Run(32, 4, bowl)
		if best := s.Best(); best > 1e-3 {
			t.Errorf("%s: the best of 32 trials is %.2g, the minimum 0; of random points about 0.01", name, best)
		}
	}
}
