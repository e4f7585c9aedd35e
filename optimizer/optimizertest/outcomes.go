package optimizertest

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// told returns a session over the unit square whose first trials have the given outcomes, in
// order. The optimiser suggests every third of them, after it was told all before; the others
// are at random points, because suggestions take most of the tests' time.
func told(t *testing.T, o optimizer.Optimizer, outcomes []float64) *Session {
	t.Helper()
	s := NewSession(t, o, Cube(t, 2, 0, 1), 1)
	s.Problem.Parallelism = 4
	rng := optimizer.NewRand(1, 1)
	for i, v := range outcomes {
		if i%3 == 0 {
			s.Ask(1)
		} else {
			s.Place(study.Point{"x1": rng.Float64(), "x2": rng.Float64()})
		}
		s.Tell(i+1, v)
	}
	return s
}

func testOutcomes(t *testing.T, suite *suite) {
	ramp := func(scale, offset float64) []float64 {
		outcomes := make([]float64, 12)
		for i := range outcomes {
			outcomes[i] = scale*float64(i%7) + offset
		}
		return outcomes
	}
	outlier := ramp(1, 0)
	outlier[5] = 1e12
	best := ramp(1, 0)
	best[5] = -1e12
	for name, outcomes := range map[string][]float64{
		"none":           nil,
		"one":            {3},
		"two":            {3, 4},
		"all equal":      ramp(0, 7),
		"all zero":       ramp(0, 0),
		"huge":           ramp(1e300/7, 0),
		"both huge":      ramp(math.MaxFloat64/4, -math.MaxFloat64/2),
		"tiny":           ramp(1e-300, 0),
		"subnormal":      ramp(5e-324, 0),
		"a tiny spread":  ramp(1e-12, 1e6),
		"a bad outlier":  outlier,
		"a good outlier": best,
	} {
		t.Run(name, func(t *testing.T) {
			s := told(t, suite.create(), outcomes)
			for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
				s.Problem.Direction = direction
				if batch := s.Ask(4); len(batch) != 4 {
					t.Errorf("%s: asked for 4, got %d", direction, len(batch))
				}
			}
		})
	}
}

func testFailures(t *testing.T, suite *suite) {
	s := NewSession(t, suite.create(), Cube(t, 2, 0, 1), 2)
	for trial := 1; trial <= 12; trial++ {
		s.Ask(1)
		s.End(trial, []optimizer.Outcome{optimizer.OutcomeFailed, optimizer.OutcomeInfeasible}[trial%2], 0)
	}
	s.Ask(4)
	s.Tell(13, 1)
	s.Tell(14, 2)
	if batch := s.Ask(4); len(batch) != 4 {
		t.Errorf("after 12 failures and 2 values: asked for 4, got %d", len(batch))
	}
}

func testDuplicates(t *testing.T, suite *suite) {
	s := told(t, suite.create(), []float64{1, 2, 3, 4, 5, 6})
	for i := range 30 {
		point := s.Problem.Observations[i%3].Point
		s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
			Point: point, Outcome: optimizer.OutcomeCompleted, Values: []float64{float64(i % 5)},
		})
	}
	if batch := s.Ask(4); len(batch) != 4 {
		t.Errorf("asked for 4, got %d", len(batch))
	}
}

func testDimensions(t *testing.T, suite *suite) {
	s := NewSession(t, suite.create(), Cube(t, 50, -1, 1), 3)
	s.Problem.MaxTrials = 10
	for trial := 1; trial <= 10; trial++ {
		point := s.Ask(1)[0].Point
		s.Tell(trial, point["x1"].(float64)+point["x50"].(float64))
	}
	if batch := s.Ask(8); len(batch) != 8 {
		t.Errorf("asked for 8, got %d", len(batch))
	}
}
