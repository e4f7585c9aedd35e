package duration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// fixed suggests the same points at each request.
type fixed []study.Point

// Suggest implements optimizer.Optimizer.
func (f fixed) Suggest(
	_ context.Context, _ *optimizer.Problem, state optimizer.State, n int, _ *rand.Rand,
) ([]optimizer.Suggestion, optimizer.State, error) {
	var list []optimizer.Suggestion
	for _, p := range f[:min(n, len(f))] {
		list = append(list, optimizer.Suggestion{Point: p, Source: optimizer.SourceModel})
	}
	return list, state, nil
}

// suggest asks for points where 10·exp(2·x1) s are a good guess, with some seconds left of 1000.
func suggest(t *testing.T, left float64, seconds float64, points ...[]float64) ([]optimizer.Suggestion, error) {
	t.Helper()
	domain := optimizertest.Cube(t, 2, 0, 1)
	e, rng := optimizer.NewEncoding(domain), rand.New(rand.NewPCG(1, 1))
	list := told(took(e, 40, rng))
	for i := range list {
		list[i].Seconds *= seconds
	}
	p := &optimizer.Problem{
		Space: domain, Direction: study.Minimize, MaxTrials: 100, Parallelism: 2, First: 41, Observations: list,
		Time: &optimizer.Time{Budget: 1000, Left: left},
	}
	if left == 0 {
		p.Time = nil
	}
	var f fixed
	for _, x := range points {
		f = append(f, e.Decode(x))
	}
	s, _, err := duration.InTime(t.Context(), f, p, nil, len(points), optimizer.NewRand(1, 41))
	return s, err
}

// Evaluations that take between 10 and 74 s: those that are expected to end in time pass as they are, and in the place of others
// comes a near one.
func TestInTime(t *testing.T) {
	quick, slow := []float64{0.1, 0.5}, []float64{0.9, 0.5} // 12 s and 60 s
	got, err := suggest(t, 40, 1, quick, slow)
	if err != nil || len(got) != 2 {
		t.Fatalf("the suggestions are %+v, %v; want two", got, err)
	}
	if at := got[0].Point["x1"].(float64); at != 0.1 || got[0].Seconds < 10 || got[0].Seconds > 15 {
		t.Errorf("the quick suggestion is now %+v", got[0])
	}
	near := got[1] // 10·exp(2x) = 40 at 0.69
	if at := near.Point["x1"].(float64); at < 0.45 || at > 0.73 || near.Seconds > 40 {
		t.Errorf("in the place of the slow suggestion is %+v", near)
	}
	if !strings.Contains(near.Reasons.Note, "of which 40 s are left") {
		t.Errorf("the note is %q", near.Reasons.Note)
	}
	again, _ := suggest(t, 40, 1, quick, slow)
	if !reflect.DeepEqual(got, again) {
		t.Error("the same request has two answers")
	}
	if _, err := suggest(t, 5, 1, quick, slow); !errors.Is(err, optimizer.ErrNoTime) {
		t.Errorf("with 5 s left the error is %v", err)
	}
	for name, c := range map[string]struct{ left, seconds float64 }{
		"a budget of trials": {0, 1}, "much time": {10000, 1}, "unknown times": {5, 0},
	} {
		got, err := suggest(t, c.left, c.seconds, quick, slow)
		if err != nil || len(got) != 2 || got[1].Point["x1"].(float64) != 0.9 || got[1].Seconds != 0 {
			t.Errorf("%s: the suggestions are %+v, %v; want them as they are", name, got, err)
		}
	}
}

// Suggestions of a study with a budget of cost say what they are expected to cost, whatever they take; while much is left, that
// does not matter.
func TestInTimeSaysTheCost(t *testing.T) {
	domain := optimizertest.Cube(t, 2, 0, 1)
	e, rng := optimizer.NewEncoding(domain), rand.New(rand.NewPCG(1, 1))
	list := told(took(e, 40, rng))
	for i := range list {
		list[i].Seconds, list[i].Cost = 1, list[i].Seconds
	}
	p := &optimizer.Problem{Space: domain, Direction: study.Minimize, MaxTrials: 100, Parallelism: 2, First: 41, Observations: list}
	ask := func(c *optimizer.Cost) []optimizer.Suggestion {
		t.Helper()
		p.Cost = c
		s, _, err := duration.InTime(t.Context(), fixed{e.Decode([]float64{0.1, 0.5}), e.Decode([]float64{0.9, 0.5})}, p, nil, 2,
			optimizer.NewRand(1, 41))
		if err != nil || len(s) != 2 {
			t.Fatalf("the suggestions are %+v, %v; want two", s, err)
		}
		return s
	}
	got := ask(&optimizer.Cost{Budget: 1000, Left: 40}) // 10·exp(2·x1) is 12 and 60
	if got[0].Cost < 10 || got[0].Cost > 15 || got[1].Cost < 50 || got[1].Cost > 72 || got[1].Point["x1"].(float64) != 0.9 {
		t.Errorf("the suggestions are %+v, want both as they are, with 12 and 60", got)
	}
	for name, c := range map[string]*optimizer.Cost{
		"no cost": nil, "no budget": {}, "much left": {Budget: 1e6, Left: 1e5},
	} {
		if got := ask(c); got[0].Cost != 0 || got[1].Cost != 0 {
			t.Errorf("%s: the suggestions are %+v, want no cost", name, got)
		}
	}
	p.Observations = list[:3]
	if got := ask(&optimizer.Cost{Budget: 1000, Left: 40}); got[0].Cost != 0 {
		t.Errorf("by three trials the suggestions are %+v, want no cost", got)
	}
}
