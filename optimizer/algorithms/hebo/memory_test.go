package hebo

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestMemory(t *testing.T) {
	h := gp.Hyperparameters{Kernel: []float64{0.1, -2.5, 1.0 / 3}, Noise: 1e-4}
	m := readMemory(nil, 3)
	m.Cursor, m.Escapes = 17, 5
	m.remember(h)
	back := readMemory(m.state(), 3)
	if diff := cmp.Diff(m, back); diff != "" {
		t.Errorf("a memory and what is read of its state (-want +got):\n%s", diff)
	}
	if other := readMemory(m.state(), 4); other.Fitted != nil || other.Cursor != 0 {
		t.Errorf("the memory of another space is read as %+v", other)
	}
	if other := readMemory(optimizer.State(`{"version": 1, "cursor": 17, "escapes": -1}`), 3); other.Escapes != 0 || other.Cursor != 0 {
		t.Errorf("a memory of less than no escapes is read as %+v", other)
	}
	for _, noise := range []float64{math.NaN(), math.Inf(1)} {
		m.Fitted.Noise = noise
		if state := m.state(); state != nil {
			t.Errorf("noise %v is kept in the state %s", noise, state)
		}
	}
	m.remember(gp.Hyperparameters{Kernel: make([]float64, 5000), Noise: 1})
	if m.Fitted != nil {
		t.Error("hyperparameters that fit into no state are kept")
	}
	long := gp.Hyperparameters{Noise: math.Nextafter(1e-300, 1)}
	for m.remember(long); m.Fitted != nil; m.remember(long) {
		if n := len(m.state()); n > optimizer.MaxStateSize {
			t.Fatalf("%d hyperparameters make a state of %d bytes", len(long.Kernel), n)
		}
		for range 500 {
			long.Kernel = append(long.Kernel, -math.Nextafter(1e-300, 1))
		}
	}
}

// Hyperparameters are searched for in full whenever the evaluations have doubled,
// in every request, or never after the first, as the setting says.
func TestFullFits(t *testing.T) {
	for fit, want := range map[Fit][]int{
		FitWarm: {0}, FitDoubling: {0, 4, 8, 16}, FitFull: {0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19},
	} {
		o := New(options(func(o *Options) { o.Fit, o.Replicate = fit, false }))
		s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 2, 0, 1), 1)
		params := DefaultOptions().Surrogate.NumParams(optimizer.NewEncoding(s.Problem.Space))
		var got []int
		for trial := 1; trial <= 20; trial++ {
			p := s.Ask(1)[0]
			if full := readMemory(s.State, params).Full; !slices.Contains(got, full) {
				got = append(got, full)
			}
			s.Tell(trial, bowl(p.Point))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: full fits to %v evaluations, want %v", fit, got, want)
		}
	}
}

// Beyond manySeen observations, hyperparameters are searched for again when there is one more
// for each seenRatio of them, or a new best one. Between, and after a restart from the state, they
// stay as they are.
func TestHyperparametersSettle(t *testing.T) {
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 1, 0, 1), 1)
	params := DefaultOptions().Surrogate.NumParams(optimizer.NewEncoding(s.Problem.Space))
	s.Problem.MaxTrials = 200
	rng := optimizer.NewRand(1, 1)
	const better = 115 // the best of all
	for trial := 1; trial <= 130; trial++ {
		x := 0.7 + 0.3*rng.Float64()
		if trial == better {
			x = 0.6
		}
		s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
			Trial: trial, Point: study.Point{"x1": x}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{math.Sqrt(x)},
		})
		if trial < 60 {
			continue
		}
		before := readMemory(s.State, params)
		p := s.Problem
		p.First = trial + 1
		_, state, err := New(DefaultOptions()).Suggest(t.Context(), &p, s.State, 1, optimizer.NewRand(1, p.First))
		if err != nil {
			t.Fatal(err)
		}
		s.State = state
		after := readMemory(state, params)
		lowest := slices.IndexFunc(s.Problem.Observations, func(o optimizer.Observation) bool {
			return o.Values.First() == s.Best()
		}) >= before.Seen
		searched := trial < 64 || lowest || trial-before.Seen >= trial/32
		if want := map[bool]int{true: trial, false: before.Seen}[searched]; after.Seen != want {
			t.Errorf("%d observations: the last search saw %d, want %d", trial, after.Seen, want)
		}
		if same := cmp.Equal(before.Fitted, after.Fitted); same == searched {
			t.Errorf("%d observations: the hyperparameters are the same: %v; a search was due: %v", trial, same, searched)
		}
	}
	s.Problem.Observations = s.Problem.Observations[:70] // as after a look at an earlier state
	if m := readMemory(s.State, params); m.current(&s.Problem) {
		t.Error("hyperparameters of more observations than there are serve")
	}
}
