package diagnosis_test

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// gridded returns a problem whose observations are the 25 points of a grid over two parameters.
func gridded(t *testing.T, values func(x, y float64) study.Values) *optimizer.Problem {
	t.Helper()
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 2, 0, 1), Direction: study.Minimize, MaxTrials: 25, Parallelism: 4, Seed: 1,
		First: 26}
	for i := range 25 {
		x, y := float64(i/5)/4, float64(i%5)/4
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": x, "x2": y}, Outcome: optimizer.OutcomeCompleted, Values: values(x, y),
		})
	}
	if n := len(p.Observations[0].Values); n > 1 {
		for _, metric := range []string{"a", "b", "c"}[:n] {
			p.Objectives = append(p.Objectives, study.Objective{Metric: metric, Direction: study.Minimize})
		}
	}
	return p
}

// limit bounds a parameter of a gridded problem.
func limit(p *optimizer.Problem, l study.Limit) {
	p.Limits = append(p.Limits, l)
	for i := range p.Observations {
		o := &p.Observations[i]
		o.Excess = append(o.Excess, l.Excess(o.Point[l.Metric].(float64)))
	}
}

// exactly diagnoses a problem whose evaluations are known to be free of noise, so that posterior
// means at trials are their values.
func exactly(t *testing.T, p *optimizer.Problem) *diagnosis.Diagnosis {
	t.Helper()
	s := named("exact", map[string]any{"noise": "no"})
	s.Spec.Objective.Metric = "loss"
	r, _, err := diagnosis.Examine(t.Context(), s, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkFindings(t, r, p)
	return r
}

func near(got *float64, want, by float64) bool { return got != nil && math.Abs(*got-want) <= by }

func TestObjectivesThatConflict(t *testing.T) {
	for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
		sign := direction.Cost(1)
		p := gridded(t, func(x, y float64) study.Values { return study.Values{x + y*y, -sign * (x + y*y)} })
		p.Objectives[1].Direction = direction
		r := exactly(t, p)
		got := r.Objectives[0]
		if len(r.Objectives) != 1 || !near(got.Front, -1, 1e-9) || !near(got.Space, -1, 1e-3) {
			t.Errorf("%s: f and its opposite have the correlations %v and %v", direction, *got.Front, *got.Space)
		}
		if got.BestA != (diagnosis.End{Trial: 1, A: 0, B: 0}) || got.BestB != (diagnosis.End{Trial: 25, A: 2, B: -2 * sign}) {
			t.Errorf("%s: the ends of the front are %+v and %+v", direction, got.BestA, got.BestB)
		}
		if !says(r, diagnosis.TopicObjectives, "a and b conflict: from one end of the front to the other, a goes from 0 to 2 and b from 0 to ") {
			t.Error(finding(r, diagnosis.TopicObjectives).Statement)
		}
	}
}

func TestObjectivesThatAgree(t *testing.T) {
	r := exactly(t, gridded(t, func(x, y float64) study.Values { return study.Values{x + y*y, 3*(x+y*y) + 1} }))
	got := r.Objectives[0]
	if got.Front != nil || !near(got.Space, 1, 1e-3) ||
		!says(r, diagnosis.TopicObjectives, "a and b do not conflict: trial 1 is the best in both.") {
		t.Errorf("%+v: %s", got, finding(r, diagnosis.TopicObjectives).Statement)
	}
}

// Of three objectives, two get better together along the front, against the third.
func TestObjectivesInPairs(t *testing.T) {
	r := exactly(t, gridded(t, func(x, y float64) study.Values { return study.Values{x + y, 1 - x + y, (x-0.25)*(x-0.25) + y} }))
	const c = 0.8606629658238704 // Pearson's of 0, ¼, … 1 and of their squared distances from ¼
	want := map[string]float64{"ab": -1, "ac": c, "bc": -c}
	for _, got := range r.Objectives {
		if !near(got.Front, want[got.A+got.B], 1e-9) {
			t.Errorf("%s and %s: %+v, want %v", got.A, got.B, got, want[got.A+got.B])
		}
	}
	if len(r.Objectives) != 3 || !says(r, diagnosis.TopicObjectives, "one of them may be enough: a and c.") {
		t.Error(finding(r, diagnosis.TopicObjectives).Statement)
	}
}

// If an objective is pure noise, nothing is said about conflicts or about what a limit costs.
func TestObjectivesWithoutAUsefulModel(t *testing.T) {
	rng := optimizer.NewRand(1, 1)
	p := gridded(t, func(x, _ float64) study.Values { return study.Values{x, rng.NormFloat64()} })
	limit(p, study.Limit{Metric: "x2", Min: new(0.2)})
	r := exactly(t, p)
	for _, topic := range []diagnosis.Topic{diagnosis.TopicObjectives, diagnosis.TopicLimits} {
		if f := finding(r, topic); f.Judged || !says(r, topic, "needs a model of b") {
			t.Errorf("%+v", f)
		}
	}
	if r.Objectives != nil || r.Limits != nil {
		t.Errorf("figures without a model: %+v, %+v", r.Objectives, r.Limits)
	}
}

// line has the front (0, 1), (0.25, 0.75), … (1, 0), at x2 = 0. The reference is
// (1.25, 1.1). The hypervolume of the first two points is 1.25·0.1 + 1·0.25, half that of all five.
func line(t *testing.T) *optimizer.Problem {
	p := gridded(t, func(x, y float64) study.Values { return study.Values{x + y, 1 - x + y} })
	p.Objectives[0].Reference, p.Objectives[1].Reference = new(1.25), new(1.1)
	return p
}

func TestLimitThatHalvesTheHypervolume(t *testing.T) {
	p := line(t)
	limit(p, study.Limit{Metric: "x1", Max: new(0.3)})
	limit(p, study.Limit{Metric: "x2", Max: new(5.0)}) // nothing is outside
	r := exactly(t, p)
	binding, idle := r.Limits[0], r.Limits[1]
	if !near(binding.Hypervolume, 0.375, 1e-12) || !near(binding.WithoutHypervolume, 0.75, 1e-12) {
		t.Errorf("%v and without the limit %v, want 0.375 and 0.75", *binding.Hypervolume, *binding.WithoutHypervolume)
	}
	if binding.Front != 2 || binding.Bound != 0 || math.Abs(binding.Outside-0.7) > 0.01 || binding.Alone != binding.Outside {
		t.Errorf("%+v", binding)
	}
	if !near(binding.Best[0].Within, 0, 0) || !near(binding.Best[1].Within, 0.75, 0) || !near(binding.Best[1].Without, 0, 0) {
		t.Errorf("the best values are %+v", binding.Best)
	}
	if idle.Outside != 0 || idle.Bound != 0 || *idle.Hypervolume != *idle.WithoutHypervolume {
		t.Errorf("a limit that nothing is outside of: %+v", idle)
	}
	want := "x1 <= 0.3 binds at 0 of the front's 2 points: it costs 50% of the hypervolume, without it the best b would be 0 instead of " +
		"0.75. Costs nothing so far: x2 <= 5."
	if f := finding(r, diagnosis.TopicLimits); f.Statement != want {
		t.Error(f.Statement)
	}
}

// Every point of the front within the limit would be dominated without it.
func TestLimitThatBindsAlongTheFront(t *testing.T) {
	p := line(t)
	limit(p, study.Limit{Metric: "x1", Max: new(0.3)})
	limit(p, study.Limit{Metric: "x2", Min: new(0.2)})
	r := exactly(t, p)
	first, second := r.Limits[0], r.Limits[1]
	if second.Front != 2 || second.Bound != 2 || first.Bound != 0 {
		t.Errorf("bound are %d and %d of %d points, want 0 and 2 of 2", first.Bound, second.Bound, second.Front)
	}
	for _, c := range []struct{ got, want float64 }{{first.Outside, 0.7}, {first.Alone, 0.7 * 0.8}, {second.Outside, 0.2},
		{second.Alone, 0.3 * 0.2}} {
		if math.Abs(c.got-c.want) > 0.01 {
			t.Errorf("a share of the space is %v, want %v", c.got, c.want)
		}
	}
}

func TestLimitWithOneObjective(t *testing.T) {
	p := gridded(t, func(x, y float64) study.Values { return study.Values{x + y} })
	limit(p, study.Limit{Metric: "x2", Min: new(0.2)})
	r := exactly(t, p)
	got := r.Limits[0]
	if got.Front != 1 || got.Bound != 1 || got.Hypervolume != nil || !near(got.Best[0].Within, 0.25, 0) || !near(got.Best[0].Without, 0, 0) {
		t.Errorf("%+v", got)
	}
	if !says(r, diagnosis.TopicLimits, "x2 >= 0.2 binds: without it the best loss would be 0 instead of 0.25.") || r.Noise.Best != 2 ||
		r.Objectives != nil {
		t.Errorf("the best is %d: %s", r.Noise.Best, finding(r, diagnosis.TopicLimits).Statement)
	}
}

func TestLimitsThatNothingIsWithin(t *testing.T) {
	p := line(t)
	limit(p, study.Limit{Metric: "x1", Min: new(2.0)})
	r := exactly(t, p)
	if got := r.Limits[0]; got.Front != 0 || got.Best[0].Within != nil || !near(got.Best[0].Without, 0, 0) || got.Outside != 1 {
		t.Errorf("%+v", got)
	}
	if !says(r, diagnosis.TopicLimits, "No trial is within all limits, but some would be without x1 >= 2.") {
		t.Error(finding(r, diagnosis.TopicLimits).Statement)
	}
	if f := finding(r, diagnosis.TopicObjectives); f.Judged {
		t.Errorf("a front that is empty is judged: %s", f.Statement)
	}
	limit(p, study.Limit{Metric: "x2", Min: new(2.0)})
	if r = exactly(t, p); !says(r, diagnosis.TopicLimits, "No trial is within all limits, and none would be without one of them.") {
		t.Error(finding(r, diagnosis.TopicLimits).Statement)
	}
}

// With noise, the front is that of the posterior means: a lucky trial is not on it.
func TestTradeoffIsNotFooledByLuck(t *testing.T) {
	rng := optimizer.NewRand(2, 1)
	f := func(x, y float64) study.Values {
		return study.Values{x + 2*y + 0.3*rng.NormFloat64(), 1 - x + 2*y + 0.3*rng.NormFloat64()}
	}
	p := gridded(t, f)
	p.Observations = append(p.Observations, gridded(t, f).Observations...)
	p.Observations[12].Values = study.Values{0.2, 0.2} // at the centre, where 1.5 is expected
	for i := range p.Observations {
		p.Observations[i].Trial = i + 1
	}
	got := diagnose(t, p).Objectives[0]
	if got.BestA.Trial == 13 || got.BestB.Trial == 13 || !near(got.Front, -1, 0.2) {
		t.Errorf("%+v", got)
	}
}
