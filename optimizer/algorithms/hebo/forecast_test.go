package hebo

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// played plays trials of an optimiser on Branin's function times a factor, in batches of five; a negative factor is maximised.
func played(t *testing.T, trials int, factor float64) *session.Session {
	t.Helper()
	f, err := testfunc.Get("branin")
	if err != nil {
		t.Fatal(err)
	}
	direction := study.Minimize
	if factor < 0 {
		direction = study.Maximize
	}
	spec := study.Spec{Objective: study.Objective{Metric: "y", Direction: direction}}
	for i, name := range []string{"a", "b"} {
		spec.Parameters = append(spec.Parameters, study.Parameter{
			Name: name, Type: study.Float, Min: &f.Lower[i], Max: &f.Upper[i], Scale: study.Linear,
		})
	}
	space, err := celspace.Of(&study.Study{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	s := &session.Session{Optimizer: New(DefaultOptions()), Problem: optimizer.Problem{
		Space: space, Direction: direction, MaxTrials: 100, Parallelism: 5, Seed: 3,
	}}
	for s.Asked() < trials {
		batch, err := s.Ask(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range batch {
			a, _ := b.Point["a"].(float64)
			c, _ := b.Point["b"].(float64)
			s.Tell(optimizer.Observation{
				Trial: s.Asked() - len(batch) + 1 + i, Point: b.Point, Outcome: optimizer.OutcomeCompleted,
				Values: study.Values{factor * f.Value([]float64{a, c})},
			})
		}
	}
	return s
}

func forecastOf(t *testing.T, s *session.Session) *optimizer.Gain {
	t.Helper()
	g, err := s.Optimizer.(optimizer.Forecaster).Forecast(t.Context(), s.Snapshot(), s.State)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Once the minimum is found, much less is expected than after a few trials. The gain is in the objective's unit, and positive also where
// the objective is maximised.
func TestForecast(t *testing.T) {
	early, late := forecastOf(t, played(t, 25, 1)), forecastOf(t, played(t, 80, 1))
	for _, g := range []*optimizer.Gain{early, late} {
		if g == nil || g.Trials != optimizer.GainTrials || !(g.Expected >= 0) || !(g.Most >= g.Expected) {
			t.Fatalf("the forecast is %+v", g)
		}
	}
	if late.Most > early.Most/10 || late.Most > 0.1 {
		t.Errorf("after 80 trials is expected %+v, and after 25 %+v", late, early)
	}
	ten := forecastOf(t, played(t, 25, -10))
	if ratio := ten.Most / early.Most; math.Abs(ratio-10) > 1 {
		t.Errorf("of ten times the function is expected %+v, and of the function %+v", ten, early)
	}
	s := played(t, 25, 1)
	if diff := cmp.Diff(forecastOf(t, s), forecastOf(t, s)); diff != "" {
		t.Errorf("the same study has two forecasts (-first +second):\n%s", diff)
	}
}

// Nothing is said of a study with few trials, with several objectives or with limits, and of one whose space is used up.
func TestForecastOfNothing(t *testing.T) {
	s := played(t, 25, 1)
	f := s.Optimizer.(optimizer.Forecaster)
	few, several, limited := *s.Snapshot(), *s.Snapshot(), *s.Snapshot()
	few.Observations = few.Observations[:optimizer.GainCompleted-1]
	several.Objectives = make([]study.Objective, 2)
	limited.Limits = make([]study.Limit, 1)
	for name, p := range map[string]*optimizer.Problem{"few": &few, "several": &several, "limited": &limited} {
		if g, err := f.Forecast(t.Context(), p, s.State); g != nil || err != nil {
			t.Errorf("%s: %+v, %v; want nothing", name, g, err)
		}
	}
	low, high := 1., 40.
	space, err := celspace.Of(&study.Study{Spec: study.Spec{
		Objective:  study.Objective{Metric: "y", Direction: study.Minimize},
		Parameters: []study.Parameter{{Name: "n", Type: study.Int, Min: &low, Max: &high, Scale: study.Linear}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	finite := optimizer.Problem{Space: space, Direction: study.Minimize, MaxTrials: 40, Parallelism: 1, Seed: 1}
	for n := range 30 {
		finite.Observations = append(finite.Observations, optimizer.Observation{
			Trial: n + 1, Point: study.Point{"n": int64(n + 1)}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{float64(n % 7)},
		})
	}
	if g, err := f.Forecast(t.Context(), &finite, nil); g != nil || err != nil {
		t.Errorf("with 10 points left: %+v, %v; want nothing", g, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Forecast(ended, s.Snapshot(), s.State); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}
