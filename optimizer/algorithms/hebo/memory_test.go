package hebo

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
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
