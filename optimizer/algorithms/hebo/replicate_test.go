package hebo

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

// repeats runs trials of the bowl plus noise. It returns which of them were repeats,
// and of how many points.
func repeats(t *testing.T, trials int, noise func(trial int, key string) float64) (of []int, points int) {
	t.Helper()
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 2, 0, 1), 4)
	places := map[string]bool{}
	for trial := 1; trial <= trials; trial++ {
		b := s.Ask(1)[0]
		key := s.Problem.Space.Key(b.Point)
		if b.Repeat {
			of = append(of, trial)
			places[key] = true
		}
		s.Tell(trial, bowl(b.Point)+noise(trial, key))
	}
	return of, len(places)
}

// While no two evaluations of a point differ, one is repeated after 8 evaluations,
// another after 32, and another after 128.
func TestProbesOfAnObjectiveWithoutNoise(t *testing.T) {
	of, points := repeats(t, 130, func(int, string) float64 { return 0 })
	if !slices.Equal(of, []int{9, 33, 129}) || points != 3 {
		t.Errorf("trials %v are repeats of %d points, want 9, 33 and 129, of 3", of, points)
	}
}

// If the first probe misses the noise, the second finds it. From then on points are
// re-evaluated: up to three of ten evaluations, since other points promise hardly more
// here.
func TestNoiseThatTheFirstProbeMisses(t *testing.T) {
	rng := optimizer.NewRand(1, 1)
	drawn := map[string]float64{}
	const trials = 80
	of, points := repeats(t, trials, func(trial int, key string) float64 {
		if _, known := drawn[key]; !known || trial > 9 {
			drawn[key] = 0.02 * rng.NormFloat64()
		}
		return drawn[key]
	})
	if len(of) < 3 || of[0] != 9 || of[1] != 33 {
		t.Fatalf("trials %v are repeats, want 9, 33 and further ones", of)
	}
	if n := len(of); n < 0.2*trials || n > 0.3*trials+1 || points < 2 {
		t.Errorf("%d of %d trials repeat %d points, want 16 to 25 that repeat at least 2", n, trials, points)
	}
}

func TestProbeDue(t *testing.T) {
	places := func(once, twice int) []surrogate.Place {
		return slices.Concat(
			slices.Repeat([]surrogate.Place{{Values: []float64{1}}}, once),
			slices.Repeat([]surrogate.Place{{Values: []float64{1, 1}}}, twice),
		)
	}
	for _, c := range []struct {
		once, twice int
		want        bool
	}{
		{0, 0, false},
		{7, 0, false},
		{8, 0, true},
		{7, 1, false},
		{29, 1, false}, // 31 evaluations
		{30, 1, true},
		{30, 2, false},
		{123, 2, false},
		{124, 2, true}, // 128 evaluations
		{600, 2, true},
		{600, 4, false},
	} {
		if got := probeDue(places(c.once, c.twice)); got != c.want {
			t.Errorf("%d places evaluated once and %d twice: %v, want %v", c.once, c.twice, got, c.want)
		}
	}
}
