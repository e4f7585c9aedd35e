package optimizertest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

func testInitial(t *testing.T, suite *suite) {
	whole := map[string]any{
		"lr": 0.01, "width": int64(32), "drop": 0.5, "decay": 0.25, "solver": "adam", "batch": int64(32), "epochs": int64(3),
	}
	partial := map[string]any{"lr": 0.1, "solver": "sgd", "momentum": 0.5}
	s := NewSession(t, suite.create(), Mixed(t, whole, partial), 1)
	batch := s.Ask(4)
	if len(batch) != 4 {
		t.Fatalf("asked for 4, got %d", len(batch))
	}
	if diff := cmp.Diff(study.Point(whole), batch[0].Point); diff != "" {
		t.Errorf("the first point is not the first initial one (-want +got):\n%s", diff)
	}
	if p := batch[1].Point; p["lr"] != 0.1 || p["momentum"] != 0.5 || p["solver"] != "sgd" {
		t.Errorf("the second initial point %v was completed to %v", partial, p)
	}
	for i, b := range batch {
		if initial := b.Source == optimizer.SourceInitial; initial != (i < 2) {
			t.Errorf("point %d has the source %q", i+1, b.Source)
		}
	}
}

func testInitialCounted(t *testing.T, suite *suite) {
	initial := []map[string]any{{"width": int64(20)}, {"width": int64(40)}, {"width": int64(60)}}
	s := NewSession(t, suite.create(), Mixed(t, initial...), 2)
	for i, want := range []any{int64(20), int64(40), int64(60)} {
		b := s.Ask(1)[0]
		if b.Point["width"] != want || b.Source != optimizer.SourceInitial {
			t.Errorf("trial %d is %v from %q, want width %v from the initial points", i+1, b.Point, b.Source, want)
		}
		if i == 0 {
			s.End(1, optimizer.OutcomeFailed, 0)
		}
	}
	if b := s.Ask(1)[0]; b.Source == optimizer.SourceInitial {
		t.Errorf("a fourth initial point: %v", b)
	}
}

func testExhaustion(t *testing.T, suite *suite) {
	s := NewSession(t, suite.create(), Small(t), 3)
	seen := map[string]bool{}
	for trial := 1; trial <= SmallSize; trial++ {
		point := s.Ask(1)[0].Point
		if key := s.Problem.Space.Key(point); seen[key] {
			t.Errorf("trial %d repeats %v", trial, point)
		} else {
			seen[key] = true
		}
		switch trial % 4 {
		case 0: // stays pending
		case 1:
			s.End(trial, optimizer.OutcomeFailed, 0)
		default:
			s.Tell(trial, float64(point["a"].(int64)))
		}
	}
	batch, err := s.TryAsk(t.Context(), 1)
	if !errors.Is(err, optimizer.ErrExhausted) || len(batch) != 0 {
		t.Errorf("after all points: %v and %v, want %v", batch, err, optimizer.ErrExhausted)
	}
}

func testExhaustionAtOnce(t *testing.T, suite *suite) {
	s := NewSession(t, suite.create(), Small(t), 4)
	for _, p := range s.Ask(3) {
		s.Tell(len(s.Problem.Observations)+1, float64(p.Point["a"].(int64)))
	}
	if got := len(s.Ask(100)); got != SmallSize-3 {
		t.Errorf("asked for 100 of a space with %d points left, got %d", SmallSize-3, got)
	}
	if batch, err := s.TryAsk(t.Context(), 2); !errors.Is(err, optimizer.ErrExhausted) || len(batch) != 0 {
		t.Errorf("with every point pending: %v and %v, want %v", batch, err, optimizer.ErrExhausted)
	}
}

func testPending(t *testing.T, suite *suite) {
	s := suite.after(t, 4)
	for range 3 {
		s.Ask(8)
	}
	seen := map[string]int{}
	for _, p := range s.Problem.Pending {
		key := s.Problem.Space.Key(p.Point)
		if earlier, repeated := seen[key]; repeated {
			t.Errorf("trial %d repeats trial %d, which is pending: %v", p.Trial, earlier, p.Point)
		}
		seen[key] = p.Trial
	}
	if len(seen) != 24 {
		t.Errorf("asked for 24 points, got %d", len(seen))
	}
}

// testBlind: a Blind gives the same answer if it is told only the latest observations. The
// space has a constraint that few points meet, so that points are found near known ones.
func testBlind(t *testing.T, suite *suite) {
	if _, blind := suite.create().(optimizer.Blind); !blind {
		return
	}
	space := Space(t, []study.Parameter{
		{Name: "x", Type: study.Float, Min: new(0.0), Max: new(1.0)},
		{Name: "y", Type: study.Float, Min: new(0.0), Max: new(1.0)},
	}, []string{"x * x + y * y <= 1e-6"})
	p := optimizer.Problem{Space: space, Direction: study.Minimize, MaxTrials: 1000, Parallelism: 2, Seed: 1}
	for i := range 3 * optimizer.BlindObservations {
		x := float64(i) / 1e6
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x": x, "y": 0.0}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{x},
		})
	}
	p.First = len(p.Observations) + 1
	ask := func(told []optimizer.Observation) []optimizer.Suggestion {
		p := p
		p.Observations = told
		batch, _, err := suite.create().Suggest(t.Context(), &p, nil, 5, optimizer.NewRand(p.Seed, p.First))
		if err != nil {
			t.Fatal(err)
		}
		return batch
	}
	all := ask(p.Observations)
	if diff := cmp.Diff(all, ask(p.Observations[len(p.Observations)-optimizer.BlindObservations:])); diff != "" {
		t.Errorf("the latest observations give another answer (-all +latest):\n%s", diff)
	}
	if cmp.Equal(all, ask(nil)) {
		t.Error("no observations give the same answer, so the test shows nothing")
	}
}

func testOnePoint(t *testing.T, suite *suite) {
	space := Space(t, []study.Parameter{{Name: "only", Type: study.Fixed, Value: "a"}}, nil)
	s := NewSession(t, suite.create(), space, 5)
	if batch := s.Ask(2); len(batch) != 1 || batch[0].Point["only"] != "a" {
		t.Errorf("asked a space of one point for two, got %v", batch)
	}
	if _, err := s.TryAsk(t.Context(), 1); !errors.Is(err, optimizer.ErrExhausted) {
		t.Errorf("got %v, want %v", err, optimizer.ErrExhausted)
	}
}

// Mixed returns a space with each type and scale of parameter, conditions
// within conditions, and a constraint.
func Mixed(t testing.TB, initial ...map[string]any) *space.Space {
	t.Helper()
	return Space(t, []study.Parameter{
		{Name: "lr", Type: study.Float, Min: new(1e-5), Max: new(1.0), Scale: study.Log},
		{Name: "width", Type: study.Int, Min: new(16.0), Max: new(256.0), Scale: study.Log},
		{Name: "drop", Type: study.Float, Min: new(0.01), Max: new(0.99), Scale: study.Logit},
		{Name: "decay", Type: study.Float, Min: new(0.0), Max: new(1.0), Step: new(0.25)},
		{Name: "solver", Type: study.Categorical, Values: []any{"adam", "sgd", "lbfgs"}},
		{Name: "momentum", Type: study.Float, Min: new(0.0), Max: new(0.99), When: map[string][]any{"solver": {"sgd"}}},
		{Name: "nesterov", Type: study.Bool, When: map[string][]any{"solver": {"sgd"}}},
		{Name: "warmup", Type: study.Int, Min: new(0.0), Max: new(9.0), When: map[string][]any{"nesterov": {true}}},
		{Name: "batch", Type: study.Ordinal, Values: []any{int64(16), int64(32), int64(64)}},
		{Name: "epochs", Type: study.Fixed, Value: int64(3)},
	}, []string{"width * lr <= 10"}, initial...)
}

// SmallSize is the number of feasible points of Small: two of a, two of b, and
// three of c and d together.
const SmallSize = 2 * 2 * 3

// Small returns a finite space with a condition and a constraint.
func Small(t testing.TB) *space.Space {
	t.Helper()
	return Space(t, []study.Parameter{
		{Name: "a", Type: study.Int, Min: new(1.0), Max: new(3.0)},
		{Name: "b", Type: study.Bool},
		{Name: "c", Type: study.Categorical, Values: []any{"x", "y"}},
		{Name: "d", Type: study.Int, Min: new(0.0), Max: new(1.0), When: map[string][]any{"c": {"y"}}},
	}, []string{"a <= 2"})
}
