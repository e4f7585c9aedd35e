package hebo

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// alone returns the paper's HEBO with a single acquisition function.
func alone(t testing.TB, robust bool) Options {
	return paper(t, func(o *Options) { o.Acquisition, o.Robust = EI, robust })
}

// Where improvement is certain, the expected improvement is how far the mean lies below the
// incumbent. There the noise, of standard deviation √2·σ in the mean, shows as it is.
func TestNoisyValues(t *testing.T) {
	const noise, mean, incumbent, logP, prior = 0.08, -5.0, 1.0, -0.5, 0.25
	s := &search{Loop: &loop.Loop{Main: &loop.Member{}, Input: loop.Input{Criterion: acquisition.EI{}}}}
	s.Main.Known.Incumbent = incumbent
	n := &noisy{s: s, sd: robustness(noise), rng: rand.New(rand.NewPCG(1, 2))}
	draws := make([]float64, 20000)
	for i := range draws {
		draws[i] = math.Exp(n.value(mean, 1e-6, logP, prior) - logP - prior)
	}
	got, sd := stat.MeanStdDev(draws, nil)
	if want := math.Sqrt(2 * noise); math.Abs(got-(incumbent-mean)) > 0.02 || math.Abs(sd-want) > 0.02 {
		t.Errorf("the improvement is %.3f ± %.3f, want %.3f ± %.3f", got, sd, incumbent-mean, want)
	}
}

// choices returns how often each point is the first choice of a request after the same noisy
// evaluations, over seeds of the search. Fits begin at random places, so the model is fitted once.
func choices(t *testing.T, o Options, of *space.Space, seeds uint64) map[float64]int {
	t.Helper()
	p := noisyLine(t)
	p.Space = of
	picked := map[float64]int{}
	var fitted *surrogate.Model
	guarded := optimizer.Guard(proposeFunc(func(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
		if fitted == nil {
			m, err := surrogate.Fit(ctx, surrogate.Observe(r.Problem, r.Encoding, o.Surrogate), o.Surrogate, nil, r.Rand)
			if err != nil {
				return nil, nil, err
			}
			fitted = m
		}
		s := proposer{o, effort{200, 20, 10}, nil}.newSearch(ctx, r, fitted, nil, nil, readMemory(nil, 0))
		return s.Fill(ctx, nil, r.N, s.strategies()), nil, nil
	}))
	for seed := range seeds {
		batch, _, err := guarded.Suggest(t.Context(), p, nil, 2, optimizer.NewRand(seed, 1))
		if err != nil {
			t.Fatal(err)
		}
		x := batch[0].Point["x1"].(float64)
		if other := batch[1].Point["x1"].(float64); other == x {
			t.Errorf("seed %d: both points of the batch are %v", seed, x)
		}
		if _, ok := batch[0].Reasons.Acquisition["logei"]; !ok {
			t.Errorf("seed %d: the reasons are %+v", seed, batch[0].Reasons)
		}
		picked[x]++
	}
	return picked
}

// Noise makes the choice between points differ from one search to the next, in a space whose
// points are all looked at and in a continuous one. Without noise the first stays the same, and
// the second is where the same maximum was climbed. hebo's own settings have no such noise.
func TestNoiseInASingleAcquisition(t *testing.T) {
	grid := optimizertest.Space(
		t, []study.Parameter{{Name: "x1", Type: study.Float, Min: number(0), Max: number(1), Step: number(1.0 / 64)}}, nil,
	)
	for name, of := range map[string]*space.Space{"grid": grid, "line": optimizertest.Cube(t, 1, 0, 1)} {
		robust, exact := choices(t, alone(t, true), of, 12), choices(t, alone(t, false), of, 12)
		if len(robust) < 4 {
			t.Errorf("%s: 12 searches with noise chose %v", name, robust)
		}
		low, high := math.Inf(1), math.Inf(-1)
		for x := range exact {
			low, high = min(low, x), max(high, x)
		}
		if high-low > 1e-3 {
			t.Errorf("%s: 12 searches without noise chose %v", name, exact)
		}
	}
	if own := choices(t, options(func(o *Options) { o.Replicate = false }), grid, 12); len(own) != 1 {
		t.Errorf("hebo chose %v", own)
	}
}
