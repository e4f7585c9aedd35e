package hebo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// options returns the defaults with one change.
func options(change func(*Options)) Options {
	o := DefaultOptions()
	change(&o)
	return o
}

func TestConformance(t *testing.T) {
	optimizertest.Run(t, func() optimizer.Optimizer { return New(DefaultOptions()) })
}

// bowl is the sum of squares around 0.6.
func bowl(p study.Point) float64 {
	var sum float64
	for _, name := range []string{"x1", "x2"} {
		x := p[name].(float64) - 0.6
		sum += x * x
	}
	return sum
}

func TestInitialDesignThenModel(t *testing.T) {
	for _, c := range []struct {
		set, dim, budget, want int
	}{
		{0, 2, 100, 4},   // at least 4
		{0, 9, 100, 10},  // one more than columns
		{0, 50, 100, 25}, // a quarter of the budget
		{7, 2, 100, 7},
	} {
		o := New(options(func(o *Options) { o.Initial = c.set }))
		s := optimizertest.NewSession(t, o, optimizertest.Cube(t, c.dim, 0, 1), 1)
		s.Problem.MaxTrials = c.budget
		for trial := 1; trial <= c.want+1; trial++ {
			b := s.Ask(1)[0]
			s.Tell(trial, bowlOf(b.Point))
			want := optimizer.SourceDesign
			if trial > c.want {
				want = optimizer.SourceModel
			}
			if b.Source != want {
				t.Errorf("%+v: trial %d is from %q, want %q", c, trial, b.Source, want)
			}
		}
	}
}

func bowlOf(p study.Point) float64 { return p["x1"].(float64) * p["x1"].(float64) }

// Eight workers that ask before anything is known all get points of the design. A
// request that begins in the design and ends beyond it gets both kinds.
func TestDesignWithinABatch(t *testing.T) {
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 2, 0, 1), 1)
	for _, b := range s.Ask(8) {
		if b.Source != optimizer.SourceDesign {
			t.Errorf("%q before anything is known, want %q", b.Source, optimizer.SourceDesign)
		}
	}
	s = optimizertest.NewSession(t, New(options(func(o *Options) { o.Initial = 5 })), optimizertest.Cube(t, 2, 0, 1), 1)
	for trial := range 3 {
		s.Tell(trial+1, bowl(s.Ask(1)[0].Point))
	}
	var sources []optimizer.Source
	for _, b := range s.Ask(4) {
		sources = append(sources, b.Source)
	}
	if fmt.Sprint(sources) != "[design design model model]" {
		t.Errorf("after 3 of 5 design points, a batch of %v", sources)
	}
}

// clusters counts the points of a batch that are not close to an earlier one in it.
func clusters(batch []optimizer.Suggestion, reach float64) int {
	var found []study.Point
	for _, b := range batch {
		near := func(p study.Point) bool {
			dx := p["x1"].(float64) - b.Point["x1"].(float64)
			dy := p["x2"].(float64) - b.Point["x2"].(float64)
			return math.Hypot(dx, dy) < reach
		}
		if !slices.ContainsFunc(found, near) {
			found = append(found, b.Point)
		}
	}
	return len(found)
}

// Suggestions keep away from pending points, of this and earlier requests.
func TestPendingPointsSpreadABatch(t *testing.T) {
	const seeds = 5
	total := func(requests int, o Options, e effort) (n int) {
		f := branin()
		o.Replicate, o.Initial = false, 12
		for seed := range uint64(seeds) {
			s := optimizertest.NewSession(t, newSmall(o, e), optimizertest.Cube(t, 2, f.lo, f.hi), seed)
			s.Run(12, 1, f.of)
			s.Problem.MaxTrials = 30
			for range requests {
				s.Ask(8 / requests)
			}
			n += clusters(s.Suggested[12:], 0.02*(f.hi-f.lo))
		}
		return n
	}
	for _, requests := range []int{1, 8} {
		if n := total(requests, DefaultOptions(), usual); n < 3*seeds {
			t.Errorf("%d times 8 points of %d requests have %d clusters", seeds, requests, n)
		}
	}
	mace := options(func(o *Options) { o.Acquisition = MACE })
	if n := total(8, mace, effort{1000, 20, 10}); n < 3*seeds {
		t.Errorf("mace: %d times 8 points of 8 requests have %d clusters", seeds, n)
	}
}

// Reasons are in the objective's units and direction: near an observed point they are
// close to the value observed there.
func TestReasonsAreInTheObjectivesUnits(t *testing.T) {
	value := func(p study.Point) float64 { return 5000 - 100*bowl(p) } // best 5000
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 2, 0, 1), 4)
	s.Problem.Direction = study.Maximize
	s.Run(25, 1, value)
	s.Problem.MaxTrials = 30
	b := s.Ask(2)
	why := b[0].Reasons
	if why.Mean == nil || math.Abs(*why.Mean-5000) > 1 || why.SD == nil || *why.SD > 5 {
		t.Errorf("near the maximum of 5000: %+v", why)
	}
	if _, ok := why.Acquisition["logei"]; !ok || why.Note == "" || why.Pending != 0 || b[1].Reasons.Pending != 1 {
		t.Errorf("reasons %+v, then %+v", why, b[1].Reasons)
	}
	if got := value(b[0].Point); math.Abs(got-*why.Mean) > 4**why.SD+0.1 {
		t.Errorf("the mean is %v ± %v, the value %v", *why.Mean, *why.SD, got)
	}
}

// If the acquisition value is not the whole reason, the note gives the rest.
func TestReasonsSayWhatElseCounted(t *testing.T) {
	o := newSmall(options(func(o *Options) { o.Acquisition = MACE }), effort{1000, 20, 10})
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 2, 0, 1), 3)
	s.Run(20, 4, bowl)
	notes := []string{
		"lowest mean of the Pareto front", "greatest uncertainty of the Pareto front", "Pareto front, at random", "Pareto front, at random",
	}
	for i, b := range s.Ask(4) {
		if _, ok := b.Reasons.Acquisition["ucb"]; !ok || !strings.HasSuffix(b.Reasons.Note, notes[i]) {
			t.Errorf("member %d: %+v, want ucb and a note that ends with %q", i, b.Reasons, notes[i])
		}
	}
}

// If the better half of the space is infeasible, the search leaves it alone once it
// knows: a model of feasibility finds its border, and the worst value keeps away from
// it.
func TestFailuresAreStayedAwayFrom(t *testing.T) {
	for _, c := range []struct {
		failures surrogate.Failures
		inside   int // of the last 20
		best     float64
	}{{surrogate.FailuresWorst, 14, -0.45}, {surrogate.FailuresModel, 0, -0.49}} {
		o := New(options(func(o *Options) { o.Surrogate.Failures = c.failures }))
		s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 2, 0, 1), 5)
		inside := 0
		for trial := 1; trial <= 40; trial++ {
			b := s.Ask(1)[0]
			if p, modelled := b.Reasons.Acquisition["feasible"]; modelled && !(p >= 0 && p <= 1) {
				t.Errorf("trial %d completes with probability %v", trial, p)
			}
			x := b.Point["x1"].(float64)
			if x > 0.5 {
				s.End(trial, optimizer.OutcomeInfeasible, 0)
				continue
			}
			if trial > 20 {
				inside++
			}
			s.Tell(trial, -x)
		}
		if inside < c.inside {
			t.Errorf("%s: %d of the last 20 trials were in the feasible half", c.failures, inside)
		}
		if best := s.Best(); best > c.best {
			t.Errorf("%s: the best value is %.4f, the bound -0.5", c.failures, best)
		}
	}
}

// Random failures do not drive the search away from a good place.
func TestFailuresByChance(t *testing.T) {
	o := New(DefaultOptions())
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 2, 0, 1), 5)
	rng := optimizer.NewRand(2, 1)
	for trial := 1; trial <= 40; trial++ {
		p := s.Ask(1)[0].Point
		if trial > 3 && rng.Float64() < 0.4 {
			s.End(trial, optimizer.OutcomeFailed, 0)
			continue
		}
		s.Tell(trial, bowl(p))
	}
	if best := s.Best(); best > 1e-4 {
		t.Errorf("the best value is %.3g, the minimum 0", best)
	}
	m := readMemory(s.State, DefaultOptions().Surrogate.NumParams(optimizer.NewEncoding(s.Problem.Space)))
	if h, ok := m.Failures[optimizer.OutcomeFailed]; !ok || len(h.Kernel) != 3 {
		t.Errorf("the memory of the model of failures is %+v", m.Failures)
	}
	m.checkFailures(5)
	if len(m.Failures) > 0 {
		t.Errorf("hyperparameters for two columns are kept for five: %+v", m.Failures)
	}
}

// The best point of a finite space is found long before all points were evaluated.
func TestFiniteSpaceIsSearchedExactly(t *testing.T) {
	lo, hi := 0.0, 20.0
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "i", Type: study.Int, Min: &lo, Max: &hi},
		{Name: "j", Type: study.Int, Min: &lo, Max: &hi},
		{Name: "c", Type: study.Categorical, Values: []any{"bad", "good", "worse"}},
	}, []string{"i + j <= 30"})
	s := optimizertest.NewSession(t, New(DefaultOptions()), space, 6)
	s.Run(50, 2, func(p study.Point) float64 {
		i, j := float64(p["i"].(int64))-13, float64(p["j"].(int64))-7
		penalty := map[any]float64{"bad": 20, "good": 0, "worse": 40}[p["c"]]
		return i*i + j*j + penalty
	})
	if best := s.Best(); best > 2 {
		t.Errorf("the best of 50 trials over %d points is %v, the minimum 0", 3*21*21, best)
	}
}

// coins is a finite space of 25 points.
func coins(t *testing.T) *space.Space {
	return optimizertest.Space(t, []study.Parameter{
		{Name: "i", Type: study.Int, Min: number(0), Max: number(4)}, {Name: "j", Type: study.Int, Min: number(0), Max: number(4)},
	}, nil)
}

// A finite space whose evaluations are known to be noisy is not exhausted: promising
// points are re-evaluated, most often those that may be the best.
func TestNoisyFiniteSpaceIsRepeated(t *testing.T) {
	run := func(noise Noise, told bool) (repeats int, of map[string]int, err error) {
		s := optimizertest.NewSession(t, New(options(func(o *Options) { o.Noise = noise })), coins(t), 1)
		s.Problem.MaxTrials = 60
		rng := optimizer.NewRand(3, 1)
		of = map[string]int{}
		for trial := 1; trial <= 60; trial++ {
			batch, err := s.TryAsk(t.Context(), 1)
			if err != nil {
				return repeats, of, err
			}
			key := s.Problem.Space.Key(batch[0].Point)
			if of[key]++; of[key] > 1 {
				repeats++
			}
			if repeated := of[key] > 1; repeated != batch[0].Repeat {
				t.Errorf("trial %d is evaluation %d of %v, and marked as a repeat: %v", trial, of[key], batch[0].Point, batch[0].Repeat)
			}
			i, j := float64(batch[0].Point["i"].(int64))-3, float64(batch[0].Point["j"].(int64))-1
			s.Tell(trial, i*i+j*j+rng.NormFloat64())
			if trial == 10 && told {
				again := s.Problem.Observations[2]
				again.Trial, again.Values = 0, []float64{again.Values.First() + 1}
				s.Problem.Observations = append(s.Problem.Observations, again)
			}
		}
		return repeats, of, nil
	}
	for name, c := range map[string]struct {
		noise Noise
		told  bool
	}{"declared": {NoiseYes, false}, "found": {NoiseAuto, true}, "found at the end": {NoiseAuto, false}} {
		repeats, of, err := run(c.noise, c.told)
		if err != nil || repeats < 60-25 {
			t.Errorf("%s: %d of 60 evaluations are repeats (%v)", name, repeats, err)
		}
		if good, bad := of[s25(t, 3, 1)], of[s25(t, 0, 4)]; good <= bad {
			t.Errorf("%s: the best point was evaluated %d times, a bad one %d times", name, good, bad)
		}
	}
	repeats, of, err := run(NoiseNo, false)
	if repeats > 0 || len(of) != 25 || !errors.Is(err, optimizer.ErrExhausted) {
		t.Errorf("without noise: %d repeats of %d points, and %v", repeats, len(of), err)
	}
}

// s25 is the key of a point of coins.
func s25(t *testing.T, i, j int64) string { return coins(t).Key(study.Point{"i": i, "j": j}) }

// Every acquisition function continues in a noisy space when every point has been
// evaluated.
func TestNoisyFiniteSpaceUnderAllAcquisitions(t *testing.T) {
	for name, o := range variants(t) {
		if o.Noise = NoiseYes; !strings.HasPrefix(name, "acquisition") {
			continue
		}
		s := optimizertest.NewSession(t, newSmall(o, small), coins(t), 1)
		for trial := 1; trial <= 28; trial++ {
			if len(s.Ask(1)) != 1 {
				t.Fatalf("%s: no point for trial %d", name, trial)
			}
			s.Tell(trial, float64(trial%5))
		}
	}
}

// If all points of a noisy space are pending, some are evaluated twice at once and the
// study continues.
func TestNoisyFiniteSpaceWithAllPending(t *testing.T) {
	s := optimizertest.NewSession(t, New(options(func(o *Options) { o.Noise = NoiseYes })), coins(t), 1)
	for trial := 1; trial <= 8; trial++ {
		s.Ask(1)
		s.Tell(trial, float64(trial%3))
	}
	if got := len(s.Ask(40)); got != 40 {
		t.Errorf("asked for 40 of a noisy space of 25 points, got %d", got)
	}
}

// A mixed space with conditions is searched by moves and gradients together.
func TestMixedSpace(t *testing.T) {
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Mixed(t), 7)
	s.Run(50, 2, func(p study.Point) float64 {
		value := math.Pow(math.Log10(p["lr"].(float64))+2, 2) + math.Pow(math.Log2(float64(p["width"].(int64)))-6, 2)
		if momentum, ok := p["momentum"].(float64); ok {
			return value + 4*(momentum-0.9)*(momentum-0.9)
		}
		return value + 3
	})
	if best := s.Best(); best > 0.2 {
		t.Errorf("the best of 50 trials is %.3f, the minimum 0", best)
	}
}

// If no model can be fitted, the study continues and says so.
func TestWithoutAModel(t *testing.T) {
	o := optimizer.Guard(proposeFunc(func(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
		m := readMemory(r.State, r.Encoding.Dim())
		batch, err := m.WithoutModel(ctx, r, nil, linalg.ErrNotPositiveDefinite)
		return batch, m.state(), err
	}))
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 2, 0, 1), 1)
	for i, b := range s.Ask(3) {
		if b.Source != optimizer.SourceFallback || b.Reasons.Pending != i || !strings.Contains(b.Reasons.Note, "not positive definite") {
			t.Errorf("point %d: %+v", i+1, b)
		}
	}
}

type proposeFunc func(context.Context, *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error)

func (f proposeFunc) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	return f(ctx, r)
}

// The conformance suite compares numbers of cores on small models; here every loop that
// is shared among cores is long enough to be shared.
func TestLargeModelOnOneCoreAndTwo(t *testing.T) {
	s := observed(t, 300)
	ask := func(cores int) []optimizer.Suggestion {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		p := s.Problem
		batch, _, err := New(DefaultOptions()).Suggest(t.Context(), &p, s.State, 3, optimizer.NewRand(p.Seed, p.First))
		if err != nil {
			t.Fatal(err)
		}
		return batch
	}
	if diff := cmp.Diff(ask(1), ask(2)); diff != "" {
		t.Errorf("(-one core +two):\n%s", diff)
	}
}

// A model begins while the first trials run, once it is foreseen how they end.
func TestModelBeginsWithWhatIsForeseen(t *testing.T) {
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 2, 0, 1), 1)
	for range 4 {
		s.Ask(1)
	}
	if again := s.Ask(1); again[0].Source != optimizer.SourceDesign {
		t.Fatalf("while nothing is known, a point is from %s", again[0].Source)
	}
	for i := range s.Problem.Pending {
		p := &s.Problem.Pending[i]
		x, _ := p.Point["x1"].(float64)
		p.Likely = study.Values{(x - 0.2) * (x - 0.2)}
	}
	if next := s.Ask(1)[0]; next.Source != optimizer.SourceModel || next.Reasons.Mean == nil || next.Reasons.Pending != 5 {
		t.Errorf("suggested %+v, want a point of the model", next)
	}
}
