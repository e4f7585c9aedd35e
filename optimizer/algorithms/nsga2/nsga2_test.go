package nsga2

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func defaults(t testing.TB) Options { return FromSettings(optimizertest.Defaults(t, Settings())) }

func BenchmarkSuggest(b *testing.B) {
	optimizertest.Benchmark(b, func() optimizer.Optimizer { return New(defaults(b)) }, 120, 1000, 10000)
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]Options{"defaults": defaults(t), "children early": {Population: 4}} {
		t.Run(name, func(t *testing.T) { optimizertest.Run(t, func() optimizer.Optimizer { return New(o) }) })
	}
}

// zdt1 is the first function of Zitzler, Deb and Thiele (2000) in six dimensions, its second
// objective negated to be maximised. Its front is 1-√f1.
func zdt1(p study.Point) study.Values {
	x := p["x1"].(float64)
	g := 1.0
	for _, name := range []string{"x2", "x3", "x4", "x5", "x6"} {
		g += 9 * p[name].(float64) / 5
	}
	return study.Values{x, -g * (1 - math.Sqrt(x/g))}
}

var twoObjectives = []study.Objective{{Metric: "f1", Direction: study.Minimize}, {Metric: "f2", Direction: study.Maximize}}

// run plays a study of two objectives, eight at once, whose results come out of order.
func run(t *testing.T, o optimizer.Optimizer, seed uint64, trials int) *optimizertest.Session {
	t.Helper()
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 6, 0, 1), seed)
	s.Problem.Objectives, s.Problem.MaxTrials, s.Problem.Parallelism = twoObjectives, trials, 8
	for len(s.Problem.Observations) < trials {
		s.Ask(8 - len(s.Problem.Pending))
		p := s.Problem.Pending[len(s.Problem.Observations)%3]
		s.TellAll(p.Trial, zdt1(p.Point))
	}
	return s
}

// hypervolume is the area that a front dominates below the point (1.1, -6), where f2 is
// maximised.
func hypervolume(s *optimizertest.Session) float64 {
	var all []study.Values
	for _, o := range s.Problem.Observations {
		all = append(all, o.Values)
	}
	found := front.Of(twoObjectives, all)
	slices.SortFunc(found, func(a, b int) int { return int(math.Copysign(1, all[a][0]-all[b][0])) })
	area, right := 0.0, 1.1
	for _, i := range slices.Backward(found) {
		if x, height := all[i][0], all[i][1]+6; x < right && height > 0 {
			area += (right - x) * height
			right = x
		}
	}
	return area
}

// After 150 evaluations the front is much nearer to the true one than that of random points.
// The area below the true front is ∫(5+√x)dx from 0 to 1, and 0.6 beyond 1.
func TestApproachesAFront(t *testing.T) {
	var found, drawn float64
	const seeds = 5
	for seed := range uint64(seeds) {
		found += hypervolume(run(t, New(defaults(t)), seed, 150)) / seeds
		drawn += hypervolume(run(t, random.New(), seed, 150)) / seeds
	}
	const whole = 5 + 2.0/3 + 0.6
	if missing, without := whole-found, whole-drawn; missing > without*0.7 {
		t.Errorf("the front misses a hypervolume of %.3f, that of random points %.3f", missing, without)
	}
}

func TestConformanceWithLimits(t *testing.T) {
	optimizertest.RunLimited(t, func() optimizer.Optimizer { return New(defaults(t)) })
}

// The population is made from the observations alone: without its state, as after a
// failover that lost it, the next children are the same.
func TestNeedsNoState(t *testing.T) {
	s := run(t, New(defaults(t)), 3, 40)
	ask := func(state optimizer.State) []optimizer.Suggestion {
		batch, _, err := New(defaults(t)).Suggest(t.Context(), &s.Problem, state, 4, optimizer.NewRand(3, s.Problem.First))
		if err != nil {
			t.Fatal(err)
		}
		return batch
	}
	if diff := cmp.Diff(ask(s.State), ask(nil)); diff != "" {
		t.Errorf("children without a state differ (-with +without):\n%s", diff)
	}
}
