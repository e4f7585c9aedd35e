package uhe

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func options(t testing.TB, change func(*Options)) Options {
	o := FromSettings(optimizertest.Defaults(t, Settings()))
	change(&o)
	return o
}

func TestConformance(t *testing.T) {
	for _, method := range []Method{UHE, MCMC, Shrink, Adaptive, Portfolio} {
		if testing.Short() && method != UHE {
			continue // the methods run concurrently in the same way
		}
		o := options(t, func(o *Options) { o.Method = method })
		t.Run(string(method), func(t *testing.T) { optimizertest.Run(t, func() optimizer.Optimizer { return New(o) }) })
	}
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

// Each method finds a smooth minimum, with four evaluations at once. Of 40 random points
// the best is about 0.008. Random points and shorter lengthscales explore more: half of that is enough.
func TestFindsTheMinimum(t *testing.T) {
	for _, method := range []Method{UHE, MAP, MCMC, Shrink, Adaptive, Portfolio, Alternate, Bandit} {
		s := optimizertest.NewSession(t, New(options(t, func(o *Options) { o.Method = method })), optimizertest.Cube(t, 2, 0, 1), 2)
		s.Run(40, 4, bowl)
		limit := 1e-3
		if method == UHE || method == Shrink || method == Adaptive {
			limit = 4e-3
		}
		if best := s.Best(); best > limit {
			t.Errorf("%s: the best of 40 trials is %.2g, the minimum 0", method, best)
		}
	}
}

// Which trials are random: never the second of a pair, every first one with alternate,
// some with the bandits, none with the others.
func TestRandomTrials(t *testing.T) {
	const initial, trials = 5, 45
	for method, want := range map[Method][2]int{
		UHE: {3, 17}, Bandit: {3, 17}, Portfolio: {6, 34}, Alternate: {20, 20}, MAP: {0, 0}, Shrink: {0, 0}, Adaptive: {0, 0},
	} {
		o := options(t, func(o *Options) { o.Method, o.Initial = method, initial })
		s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, 0, 1), 4)
		s.Problem.MaxTrials = trials
		s.Run(trials, 3, bowl)
		random := 0
		for i, suggested := range s.Suggested[initial:] {
			if suggested.Source != optimizer.SourceRandom {
				continue
			}
			random++
			if i%2 == 1 && method.group() == 2 {
				t.Errorf("%s: trial %d, the second of its pair, is random", method, initial+i+1)
			}
		}
		if random < want[0] || random > want[1] {
			t.Errorf("%s: %d of %d trials are random, want %d to %d", method, random, trials-initial, want[0], want[1])
		}
	}
}

// The evaluation that is recommended under noise is that with the best posterior mean,
// under the hyperparameters of the last fit: not a lucky one beside bad ones.
func TestRecommendsByTheModel(t *testing.T) {
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize, MaxTrials: 60}
	rng := optimizer.NewRand(1, 1)
	for i := range 40 {
		x := float64(i) / 39
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": x}, Outcome: optimizer.OutcomeCompleted,
			Values: study.Values{4*(x-0.3)*(x-0.3) + 0.1*rng.NormFloat64()},
		})
	}
	p.Observations[35].Values = study.Values{-0.4} // at 0.9
	m := readMemory(nil, UHE, 2)
	m.Fitted = &gp.Hyperparameters{Kernel: []float64{math.Log(0.3), 0}, Noise: 0.02}
	r, err := optimizer.Recommend(t.Context(), New(options(t, func(*Options) {})), p, m.state())
	if err != nil || r == nil || math.Abs(r.Point["x1"].(float64)-0.3) > 0.15 {
		t.Errorf("recommended %+v, %v; the minimum is at 0.3", r, err)
	}
}

// A state with as many open pairs as it may have is small enough and read again; one of
// another method, or with impossible numbers, is not used.
func TestMemory(t *testing.T) {
	m := readMemory(nil, UHE, 3)
	m.Cursor, m.Fitted = math.MaxUint32, &gp.Hyperparameters{Kernel: []float64{-1. / 3, 0.1, 2e-7}, Noise: 1. / 7}
	m.Bandit = bandit{Horizon: 10_000, Groups: 5000, Log: -1. / 3}
	m.Growth = growth{Points: 1_000_000, Factor: 100. / 3}
	for i := range mostOpen {
		m.Bandit.Open = append(m.Bandit.Open, group{First: 1_000_000_000 + i, Random: i%2 == 0, P: 0.12345678901234567})
	}
	state := m.state()
	if len(state) > optimizer.MaxStateSize {
		t.Fatalf("a state of %d bytes", len(state))
	}
	if diff := cmp.Diff(m, readMemory(state, UHE, 3)); diff != "" {
		t.Errorf("a memory and what is read of its state (-want +got):\n%s", diff)
	}
	fresh := &memory{Version: memoryVersion, Method: UHE}
	for name, got := range map[string]*memory{
		"other parameters": readMemory(state, UHE, 4),
		"no probability":   readMemory(optimizer.State(`{"version":1,"method":"uhe","bandit":{"horizon":9,"groups":1,"open":[{"first":3,"p":0}]}}`), UHE, 3),
		"a factor of 0.5":  readMemory(optimizer.State(`{"version":1,"method":"uhe","growth":{"factor":0.5}}`), UHE, 3),
		"no horizon":       readMemory(optimizer.State(`{"version":1,"method":"uhe","bandit":{"open":[{"first":3,"p":1}]}}`), UHE, 3),
	} {
		if diff := cmp.Diff(fresh, got); diff != "" {
			t.Errorf("%s (-fresh +got):\n%s", name, diff)
		}
	}
	if got := readMemory(state, MAP, 3); got.Fitted != nil || got.Method != MAP {
		t.Error("the memory of another method is used")
	}
	wide := &memory{
		Version: memoryVersion, Method: UHE, Fitted: &gp.Hyperparameters{Kernel: make([]float64, 40_000), Noise: 1},
		Bandit: bandit{Horizon: 9, Groups: 2},
	}
	if back := readMemory(wide.state(), UHE, 40_000); back.Fitted != nil || back.Bandit.Groups != 2 {
		t.Errorf("of a state that is too long, the bandit alone is kept: got %+v", back.Bandit)
	}
}

func BenchmarkSuggest(b *testing.B) {
	o := options(b, func(*Options) {})
	optimizertest.Benchmark(b, func() optimizer.Optimizer { return New(o) }, 30, 100, 256)
}
