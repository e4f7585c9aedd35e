package optimizer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// propose makes a function a Proposer.
type propose func(r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error)

func (f propose) Propose(_ context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	return f(r)
}

// byChance draws all requested points.
func byChance(r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	var batch []optimizer.Suggestion
	for range r.N {
		p, err := r.Sampler.Draw(optimizer.Uniform(r.Rand))
		if err != nil {
			return batch, nil, err
		}
		r.Sampler.MarkTaken(p)
		batch = append(batch, optimizer.Suggestion{Point: p, Source: optimizer.SourceRandom})
	}
	return batch, nil, nil
}

// The conformance suite checks the guard's promises for a well-behaved algorithm; the
// tests below check them for algorithms that break the rules.
func TestGuardConformance(t *testing.T) {
	optimizertest.Run(t, func() optimizer.Optimizer { return optimizer.Guard(propose(byChance)) })
}

func TestGuardMendsWhatAnAlgorithmGetsWrong(t *testing.T) {
	space := optimizertest.Small(t)
	feasible := study.Point{"a": int64(1), "b": true, "c": "x"}
	for name, batch := range map[string][]study.Point{
		"nothing":                 nil,
		"the same point again":    {feasible, feasible, feasible},
		"an infeasible point":     {{"a": int64(3), "b": true, "c": "x"}},
		"a point of no space":     {{"z": 1}, nil},
		"an inactive parameter":   {{"a": int64(1), "b": true, "c": "x", "d": int64(1)}},
		"more than was asked for": {feasible, feasible, feasible, feasible, feasible, feasible, feasible},
	} {
		t.Run(name, func(t *testing.T) {
			o := optimizer.Guard(propose(func(*optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
				var suggestions []optimizer.Suggestion
				for _, p := range batch {
					suggestions = append(suggestions, optimizer.Suggestion{Point: p, Source: optimizer.SourceModel})
				}
				return suggestions, nil, nil
			}))
			s := optimizertest.NewSession(t, o, space, 1)
			seen := map[string]bool{}
			for range 3 {
				if got := len(s.Ask(4)); got != 4 {
					t.Errorf("asked for 4, got %d", got)
				}
			}
			for _, p := range s.Problem.Pending {
				seen[space.Key(p.Point)] = true
			}
			if len(seen) != optimizertest.SmallSize {
				t.Errorf("%d of the space's %d points were suggested", len(seen), optimizertest.SmallSize)
			}
		})
	}
}

func TestGuardPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	large := make(optimizer.State, optimizer.MaxStateSize+1)
	for name, f := range map[string]propose{
		"an error":          func(*optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) { return nil, nil, broken },
		"a state too large": func(*optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) { return nil, large, nil },
		"an error after points": func(r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
			batch, _, _ := byChance(r)
			return batch, nil, broken
		},
	} {
		p := optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), First: 1}
		before := optimizer.State("before")
		batch, state, err := optimizer.Guard(f).Suggest(t.Context(), &p, before, 2, optimizer.NewRand(1, 1))
		if err == nil || batch != nil || string(state) != "before" {
			t.Errorf("%s: got %v, the state %q and %v, want nothing but the error and the state as it was", name, batch, state, err)
		}
	}
}

// When the context ends while an algorithm works, its points are the answer. The guard
// adds only a single point if there is none.
func TestGuardWhenTheContextEnds(t *testing.T) {
	for _, c := range []struct{ initial, proposed, want int }{{0, 3, 3}, {0, 0, 1}, {2, 0, 2}, {1, 2, 3}} {
		ctx, cancel := context.WithCancel(t.Context())
		o := optimizer.Guard(propose(func(r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
			cancel()
			r.N = c.proposed
			return byChance(r)
		}))
		initial := []map[string]any{{"x": 0.25}, {"x": 0.75}}[:c.initial]
		space := optimizertest.Space(t, []study.Parameter{{Name: "x", Type: study.Float, Min: at(0), Max: at(1)}}, nil, initial...)
		batch, _, err := o.Suggest(ctx, &optimizer.Problem{Space: space, First: 1}, nil, 5, optimizer.NewRand(1, 1))
		if err != nil || len(batch) != c.want {
			t.Errorf("%+v: %d points and %v", c, len(batch), err)
		}
	}
}

// certain declares beforehand that evaluations are noisy.
type certain struct{ propose }

func (certain) Noisy() bool { return true }

// A repetition of an observed point passes only if evaluations are known to be noisy.
func TestGuardPassesRepeatsOnPurpose(t *testing.T) {
	space := optimizertest.Small(t)
	points, _ := space.Enumerate(100)
	repeat := propose(func(*optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
		return []optimizer.Suggestion{{Point: points[0], Source: optimizer.SourceModel, Repeat: true}}, nil, nil
	})
	once := []optimizer.Observation{{Point: points[0], Outcome: optimizer.OutcomeCompleted, Values: []float64{1}}}
	same := append(slices.Clone(once), once[0])
	other := append(slices.Clone(once), optimizer.Observation{Point: points[0], Outcome: optimizer.OutcomeCompleted, Values: []float64{1.5}})
	two := []optimizer.Observation{
		{Point: points[0], Outcome: optimizer.OutcomeCompleted, Values: []float64{1, 2}},
		{Point: points[0], Outcome: optimizer.OutcomeCompleted, Values: []float64{1, 2.5}},
	}
	for name, c := range map[string]struct {
		observed []optimizer.Observation
		by       optimizer.Proposer
		want     bool
	}{
		"unknown": {once, repeat, false}, "the same value again": {same, repeat, false},
		"another value": {other, repeat, true}, "another value of the second objective": {two, repeat, true},
		"declared": {once, certain{repeat}, true},
	} {
		p := optimizer.Problem{Space: space, First: 4, Observations: c.observed}
		batch, _, err := optimizer.Guard(c.by).Suggest(t.Context(), &p, nil, 1, optimizer.NewRand(1, 1))
		if err != nil || len(batch) != 1 {
			t.Fatalf("%s: %v and %v", name, batch, err)
		}
		if passed := space.Key(batch[0].Point) == space.Key(points[0]); passed != c.want {
			t.Errorf("%s: the repeat passed: %v, want %v", name, passed, c.want)
		}
	}
}

func TestDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want bool
	}{
		{1, 1, false}, {1, 1 + 1e-12, false}, {1, 1 + 1e-9, true}, {0, 1e-300, false},
		{1e300, 1.1e300, true}, {math.MaxFloat64, -math.MaxFloat64, true}, {1e12, 1e12 + 1, false},
	} {
		if got := optimizer.Differ(c.a, c.b); got != c.want {
			t.Errorf("Differ(%g, %g) = %v", c.a, c.b, got)
		}
	}
}

func TestSamplerFindsRarePoints(t *testing.T) {
	parameters := []study.Parameter{
		{Name: "x", Type: study.Float, Min: at(0), Max: at(1)},
		{Name: "y", Type: study.Float, Min: at(0), Max: at(1)},
		{Name: "n", Type: study.Int, Min: at(1), Max: at(100000)},
	}
	for name, c := range map[string]struct {
		constraint string
		initial    []map[string]any
	}{
		"one in a hundred":             {"x + y <= 0.14", nil},
		"one in a million, at a bound": {"x + y >= 1.9985", nil},
		"one in a million, inside": {
			"x > 0.5 && x < 0.501 && y > 0.5 && y < 0.501",
			[]map[string]any{{"x": 0.5005, "y": 0.5005, "n": int64(3)}},
		},
		"with an initial value that leaves little": {"x >= y * 0.999 && x <= y", []map[string]any{{"y": 1.0}, {"x": 0.5}}},
	} {
		t.Run(name, func(t *testing.T) {
			space := optimizertest.Space(t, parameters, []string{c.constraint}, c.initial...)
			s := optimizertest.NewSession(t, optimizer.Guard(propose(byChance)), space, 1)
			for range 5 {
				s.Ask(2) // the session checks that they are feasible
			}
			for i, initial := range c.initial {
				for parameter, value := range initial {
					if got := s.Suggested[i].Point[parameter]; got != value {
						t.Errorf("initial point %d: %s is %v, want %v", i+1, parameter, got, value)
					}
				}
			}
		})
	}
}

func TestSamplerSaysThatItFoundNothing(t *testing.T) {
	space := optimizertest.Space(t,
		[]study.Parameter{{Name: "x", Type: study.Float, Min: at(0), Max: at(1)}, {Name: "y", Type: study.Float, Min: at(0), Max: at(1)}},
		[]string{"x == 0.25 && y == 0.125"}, map[string]any{"x": 0.25, "y": 0.125})
	s := optimizertest.NewSession(t, optimizer.Guard(propose(byChance)), space, 1)
	s.Ask(1) // the initial point is the only one
	if batch, err := s.TryAsk(t.Context(), 1); !errors.Is(err, optimizer.ErrNoFeasible) || len(batch) > 0 {
		t.Errorf("got %v and %v, want %v", batch, err, optimizer.ErrNoFeasible)
	}
}

// A finite space of many points, few of which satisfy the constraints.
func TestSamplerExhaustsALargeSpaceWithFewFeasiblePoints(t *testing.T) {
	var parameters []study.Parameter
	for _, name := range []string{"a", "b", "c", "d"} {
		parameters = append(parameters, study.Parameter{Name: name, Type: study.Int, Min: at(0), Max: at(30)})
	}
	space := optimizertest.Space(t, parameters, []string{"a + b <= 1", "c <= 0 && d <= 1"})
	s := optimizertest.NewSession(t, optimizer.Guard(propose(byChance)), space, 1)
	// (a, b) is (0,0), (0,1) or (1,0); d is 0 or 1.
	if got := len(s.Ask(100)); got != 6 {
		t.Errorf("%d points, want 6", got)
	}
	if _, err := s.TryAsk(t.Context(), 1); !errors.Is(err, optimizer.ErrExhausted) {
		t.Errorf("got %v, want %v", err, optimizer.ErrExhausted)
	}
}

func TestInitialPointThatWasToldBefore(t *testing.T) {
	first, second := map[string]any{"a": int64(1), "b": true, "c": "x"}, map[string]any{"a": int64(2)}
	space := optimizertest.Space(t, optimizertest.Small(t).Parameters(), nil, first, second)
	s := optimizertest.NewSession(t, optimizer.Guard(propose(byChance)), space, 1)
	s.Problem.Observations = []optimizer.Observation{{Point: space.Initial()[0], Outcome: optimizer.OutcomeCompleted, Values: []float64{1}}}
	batch := s.Ask(2)
	if b := batch[0]; b.Source != optimizer.SourceRandom || b.Reasons.Note == "" || space.Key(b.Point) == space.Key(space.Initial()[0]) {
		t.Errorf("%v from %q because %q: the first initial point was evaluated already", b.Point, b.Source, b.Reasons.Note)
	}
	if b := batch[1]; b.Source != optimizer.SourceInitial || b.Point["a"] != int64(2) {
		t.Errorf("%v from %q, want the second initial point", b.Point, b.Source)
	}
}

// A discrete space too large to be counted does not repeat a point either.
func TestNoRepeatInAnUncountableSpace(t *testing.T) {
	var parameters []study.Parameter
	all := study.Point{}
	for i := range 60 {
		name := fmt.Sprintf("b%d", i)
		parameters = append(parameters, study.Parameter{Name: name, Type: study.Bool})
		all[name] = true
	}
	o := optimizer.Guard(propose(func(*optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
		return []optimizer.Suggestion{{Point: all, Source: optimizer.SourceModel}}, nil, nil
	}))
	s := optimizertest.NewSession(t, o, optimizertest.Space(t, parameters, nil), 1)
	for trial, want := range []optimizer.Source{optimizer.SourceModel, optimizer.SourceRandom} {
		if b := s.Ask(1)[0]; b.Source != want {
			t.Errorf("trial %d is from %q, want %q", trial+1, b.Source, want)
		}
		s.Tell(trial+1, 1)
	}
}

// A space with too many points to look at each: all that meet the equality are drawn, each once,
// and then the error claims no more than what was looked for.
func TestAllPointsOfAnEquality(t *testing.T) {
	parameters := []study.Parameter{
		{Name: "a", Type: study.Int, Min: at(0), Max: at(1e6)},
		{Name: "b", Type: study.Int, Min: at(0), Max: at(1e6)},
	}
	space := optimizertest.Space(t, parameters, []string{"a + b == 10"})
	s := optimizertest.NewSession(t, optimizer.Guard(propose(byChance)), space, 1)
	found := map[string]bool{}
	for range 11 {
		for _, suggestion := range s.Ask(1) {
			found[space.Key(suggestion.Point)] = true
		}
	}
	if len(found) != 11 {
		t.Errorf("%d points, want 11", len(found))
	}
	_, err := s.TryAsk(t.Context(), 1)
	if !errors.Is(err, optimizer.ErrExhausted) || !errors.Is(err, optimizer.ErrNoOther) {
		t.Errorf("after all points: %v, want %v", err, optimizer.ErrNoOther)
	}
}
