package hebo

import (
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// A search has contracted when 8 of its latest 16 points are within a twentieth of
// the range of an earlier one in every coordinate.
func TestContracted(t *testing.T) {
	apart := func(n int) (points [][]float64) {
		for i := range n {
			points = append(points, []float64{float64(i%10) / 9, float64(i/10) / 9})
		}
		return points
	}
	beside := func(n int, by float64) [][]float64 { return slices.Repeat([][]float64{{by, 0}}, n) }
	for _, c := range []struct {
		name   string
		points [][]float64
		want   bool
	}{
		{"none", nil, false},
		{"15 at one place", beside(15, 0), false},
		{"16 at one place", beside(16, 0), true},
		{"all apart", apart(30), false},
		{"7 again", append(apart(30), beside(7, 0)...), false},
		{"8 again", append(apart(30), beside(8, 0)...), true},
		{"8 again, long ago", append(append(apart(10), beside(8, 0)...), apart(40)[20:]...), false},
		{"8 beside a point", append(apart(30), beside(8, 0.05)...), true},
		{"and where the second coordinate differs", append(apart(30), slices.Repeat([][]float64{{0, 0.9}}, 8)...), false},
	} {
		trail := &trail{}
		for _, x := range c.points {
			trail.add(x)
		}
		if got := trail.contracted(); got != c.want {
			t.Errorf("%s: contracted is %v, want %v", c.name, got, c.want)
		}
	}
}

// escapes reports which of a request's eight points are drawn at random. The study has
// 24 random points, 12 that nearly repeat the best of them, and the given number of
// escapes so far.
func escapes(t *testing.T, options Options, noise float64, prior *study.Prior, before int) []bool {
	t.Helper()
	parameters := []study.Parameter{
		{Name: "a", Type: study.Float, Min: number(0), Max: number(1), Prior: prior},
		{Name: "b", Type: study.Float, Min: number(0), Max: number(1)},
	}
	s := optimizertest.NewSession(t, New(options), optimizertest.Space(t, parameters, nil), 3)
	s.Problem.Parallelism, s.Problem.MaxTrials = 8, 100
	rng := optimizer.NewRand(1, 1)
	observe := func(a, b, value float64) {
		n := len(s.Problem.Observations) + 1
		s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
			Trial: n, Point: study.Point{"a": a, "b": b}, Outcome: optimizer.OutcomeCompleted, Values: []float64{value},
		})
		s.Problem.First = n + 1
	}
	for range 24 {
		a, b := rng.Float64(), rng.Float64()
		observe(a, b, 1+a+b)
	}
	observe(0.5, 0.5, 0)
	for i := range 11 {
		observe(0.5, 0.5+0.001*float64(i/2), noise*float64(i%2))
	}
	s.State = (&memory{Version: memoryVersion, Escapes: before}).state()
	var drawn []bool
	count := before
	for _, b := range s.Ask(8) {
		random := strings.HasPrefix(b.Reasons.Note, "drawn at random: the latest")
		drawn = append(drawn, random)
		if random {
			count++
		}
		if random && (b.Reasons.Mean == nil || b.Reasons.Acquisition["logei"] == 0) {
			t.Errorf("a random point is given no reasons: %+v", b.Reasons)
		}
		if random && prior != nil && b.Point["a"].(float64) > 0.2 {
			t.Errorf("a random point has a = %v, far from its prior", b.Point["a"])
		}
	}
	if after := readMemory(s.State, options.Surrogate.NumParams(optimizer.NewEncoding(s.Problem.Space))).Escapes; after != count {
		t.Errorf("%d escapes are remembered, want %d", after, count)
	}
	return drawn
}

// At most 20 of 100 trials, and 200 of 10,000, are drawn to escape.
func TestMayEscape(t *testing.T) {
	for _, c := range []struct {
		trial, escapes int
		want           bool
	}{
		{18, 0, true}, {19, 0, false},
		{100, 19, true}, {100, 20, false}, {99, 0, false},
		{10_000, 199, true}, {10_000, 200, false},
	} {
		if got := mayEscape(c.trial, c.escapes); got != c.want {
			t.Errorf("trial %d after %d escapes: %v, want %v", c.trial, c.escapes, got, c.want)
		}
	}
}

func TestEscape(t *testing.T) {
	on := DefaultOptions()
	on.Escape, on.Plateaus = true, false                                 // points that leave a plateau count as well
	second := []bool{false, true, false, true, false, true, false, true} // trials 38, 40, …
	few := []bool{false, true, false, false, false, false, false, true}  // 2√38 is 12.3, 2√44 13.3
	none := make([]bool, 8)
	for _, c := range []struct {
		name    string
		options Options
		noise   float64
		prior   *study.Prior
		before  int
		want    []bool
	}{
		{"with noise", on, 0.1, nil, 0, second},
		{"without noise", on, 0, nil, 0, none},
		{"by default", DefaultOptions(), 0.1, nil, 0, none},
		{"after 12 escapes", on, 0.1, nil, 12, few},
		{"after 14 escapes", on, 0.1, nil, 14, none},
		{"from a prior", on, 0.1, &study.Prior{Mean: number(0.1), SD: number(0.02)}, 0, second},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := escapes(t, c.options, c.noise, c.prior, c.before); !slices.Equal(got, c.want) {
				t.Errorf("drawn at random: %v, want %v", got, c.want)
			}
		})
	}
}
