package hebo

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// timed plays a study of 40 trials, of which a trial takes the seconds that its point says, and returns it. The objective has two
// minima that are equally good.
func timed(t *testing.T, cost Cost, seconds func(p study.Point) float64) *optimizertest.Session {
	t.Helper()
	o := DefaultOptions()
	o.Cost, o.Initial = cost, 10
	s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, 0, 1), 3)
	s.Problem.MaxTrials = 40
	for range s.Problem.MaxTrials {
		s.Ask(1)
		p := s.Problem.Pending[0]
		x, y := p.Point["x1"].(float64), p.Point["x2"].(float64)
		s.Tell(p.Trial, min((x-0.2)*(x-0.2), (x-0.8)*(x-0.8))+(y-0.5)*(y-0.5))
		s.Problem.Observations[len(s.Problem.Observations)-1].Seconds = seconds(p.Point)
	}
	return s
}

// grows is a hundred times as long at one end as at the other.
func grows(p study.Point) float64 { return math.Pow(100, p["x1"].(float64)) }

// Without the setting, the time of evaluations changes nothing; with it, nothing changes while no time is known.
func TestCostNoneIsBitIdentical(t *testing.T) {
	unknown := func(study.Point) float64 { return 0 }
	want := timed(t, CostNone, unknown).Suggested
	for _, c := range []struct {
		cost    Cost
		seconds func(study.Point) float64
	}{{CostNone, grows}, {CostPerSecond, unknown}, {CostCooled, unknown}} {
		if got := timed(t, c.cost, c.seconds).Suggested; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the suggestions differ from those without a time", c.cost)
		}
	}
}

// Of two minima that are equally good, the search is at the quick one, and says what it expects. It reaches the minimum.
func TestCostPrefersQuickPoints(t *testing.T) {
	spent := func(s *optimizertest.Session) (seconds float64) {
		for _, o := range s.Problem.Observations {
			seconds += o.Seconds
		}
		return seconds
	}
	plain := spent(timed(t, CostNone, grows))
	for _, cost := range []Cost{CostPerSecond, CostCooled} {
		s := timed(t, cost, grows)
		if got := spent(s); got > 0.8*plain {
			t.Errorf("%s: 40 trials took %.0f s, %.0f s without the setting", cost, got, plain)
		}
		if best := s.Problem.Best(); best.Mean > 0.003 {
			t.Errorf("%s: the best is %+v, the minimum 0", cost, best)
		}
		if note := s.Suggested[20].Reasons.Note; !strings.Contains(note, "expected to take ") {
			t.Errorf("%s: the note %q says nothing of the time", cost, note)
		}
	}
}

// In a study with a cost, the search is at the minimum that costs less, though it takes longer, and says what it expects.
func TestCostTakesTheTimesPlace(t *testing.T) {
	o := DefaultOptions()
	o.Cost, o.Initial = CostPerSecond, 10
	s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, 0, 1), 3)
	s.Problem.MaxTrials, s.Problem.Cost = 40, &optimizer.Cost{Metric: "dollars"}
	cheap := 0
	for i := range s.Problem.MaxTrials {
		s.Ask(1)
		p := s.Problem.Pending[0]
		x, y := p.Point["x1"].(float64), p.Point["x2"].(float64)
		if i >= 20 && x > 0.5 {
			cheap++
		}
		s.Tell(p.Trial, min((x-0.2)*(x-0.2), (x-0.8)*(x-0.8))+(y-0.5)*(y-0.5))
		last := &s.Problem.Observations[len(s.Problem.Observations)-1]
		last.Seconds, last.Cost = grows(p.Point), 1e-5/grows(p.Point) // tiny costs are no reason to fail
	}
	if cheap < 15 {
		t.Errorf("%d of the last 20 trials are at the cheap minimum; want most", cheap)
	}
	if note := s.Suggested[20].Reasons.Note; !strings.Contains(note, "expected to cost ") || !strings.HasSuffix(note, " dollars") {
		t.Errorf("the note %q says nothing of the cost", note)
	}
}

// With a budget of cost or time, what is left of it decides, the least of both.
func TestPowerOfABudget(t *testing.T) {
	for _, c := range []struct {
		time *optimizer.Time
		cost *optimizer.Cost
		want float64
	}{
		{nil, nil, 0.5}, {nil, &optimizer.Cost{Metric: "dollars"}, 0.5}, {nil, &optimizer.Cost{Budget: 10, Left: 2}, 0.2},
		{&optimizer.Time{Budget: 100, Left: 75}, nil, 0.75}, {&optimizer.Time{Budget: 100, Left: 75}, &optimizer.Cost{Budget: 10, Left: 2}, 0.2},
		{&optimizer.Time{Budget: 100, Left: 10}, &optimizer.Cost{Budget: 10, Left: 2}, 0.1}, {nil, &optimizer.Cost{Budget: 10}, 0},
	} {
		o := proposer{options: Options{Cost: CostCooled, Initial: 20}}
		p := &optimizer.Problem{
			Space: optimizertest.Cube(t, 2, 0, 1), MaxTrials: 100, Observations: make([]optimizer.Observation, 60), Time: c.time, Cost: c.cost,
		}
		if got := o.power(&optimizer.Request{Problem: p, Encoding: optimizer.NewEncoding(p.Space)}); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("with %+v and %+v the power is %g, want %g", c.time, c.cost, got, c.want)
		}
	}
}

// By default the time counts where it is the budget and earlier studies say how long evaluations took.
func TestTimeCountsByDefault(t *testing.T) {
	timed := []optimizer.Earlier{{Name: "april"}, {Name: "may", Seconds: []float64{3}}}
	budget := &optimizer.Time{Budget: 100, Left: 75}
	for _, c := range []struct {
		time    *optimizer.Time
		earlier []optimizer.Earlier
		want    float64
	}{{nil, nil, 0}, {budget, nil, 0}, {budget, timed[:1], 0}, {nil, timed, 0}, {budget, timed, 0.75}} {
		p := &optimizer.Problem{Space: optimizertest.Cube(t, 2, 0, 1), MaxTrials: 100, Time: c.time, Earlier: c.earlier}
		r := &optimizer.Request{Problem: p, Encoding: optimizer.NewEncoding(p.Space)}
		if got := (proposer{options: DefaultOptions()}).power(r); got != c.want {
			t.Errorf("with %+v and %+v the power is %g, want %g", c.time, c.earlier, got, c.want)
		}
	}
}

// Lee et al. (2020) take the budget that is left, as a share of the budget after the initial design.
func TestPowerOfTheTime(t *testing.T) {
	for _, c := range []struct {
		cost  Cost
		ended int
		want  float64
	}{
		{CostNone, 20, 0}, {CostPerSecond, 20, 1}, {CostPerSecond, 100, 1},
		{CostCooled, 5, 1}, {CostCooled, 20, 1}, {CostCooled, 60, 0.5}, {CostCooled, 90, 0.125}, {CostCooled, 120, 0},
	} {
		o := proposer{options: Options{Cost: c.cost, Initial: 20}}
		p := &optimizer.Problem{Space: optimizertest.Cube(t, 2, 0, 1), MaxTrials: 100, Observations: make([]optimizer.Observation, c.ended)}
		r := &optimizer.Request{Problem: p, Encoding: optimizer.NewEncoding(p.Space)}
		if got := o.power(r); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s after %d of 100 trials, 20 of them the initial design: the power is %g, want %g", c.cost, c.ended, got, c.want)
		}
	}
}

// The best points lie where nothing has ended, and a trial runs there. Once it has run for ten times as long as any other, the next
// point is expected to take long as well. Without the setting, nothing changes.
func TestPendingTrialsThatRunForLong(t *testing.T) {
	next := func(cost Cost, ran float64) optimizer.Suggestion {
		o := DefaultOptions()
		o.Cost, o.Initial, o.Noise = cost, 4, NoiseNo
		s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 1, 0, 1), 3)
		s.Problem.MaxTrials = 40
		for i := range 8 {
			x := 0.08 * float64(i)
			s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
				Trial: i + 1, Point: study.Point{"x1": x}, Outcome: optimizer.OutcomeCompleted,
				Values: study.Values{(x - 0.85) * (x - 0.85)}, Seconds: 10 + float64(i%3),
			})
		}
		s.Problem.Pending = []optimizer.Pending{{Trial: 9, Point: study.Point{"x1": 0.9}, Seconds: ran}}
		s.Problem.First = 10
		list, _, err := New(o).Suggest(t.Context(), &s.Problem, nil, 1, optimizer.NewRand(3, 10))
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	takes := func(s optimizer.Suggestion) (seconds float64) {
		_, text, _ := strings.Cut(s.Reasons.Note, "expected to take ")
		if _, err := fmt.Sscanf(text, "%g s", &seconds); err != nil {
			t.Fatalf("%q: %v", s.Reasons.Note, err)
		}
		return seconds
	}
	for _, cost := range []Cost{CostPerSecond, CostCooled} {
		begun, late := next(cost, 0), next(cost, 120)
		if x := late.Point["x1"].(float64); x < 0.8 {
			t.Fatalf("%s: the next point is %g, and the best ones are above 0.8", cost, x)
		}
		if a, b := takes(begun), takes(late); a > 15 || b < 100 {
			t.Errorf("%s: near a trial that has just begun %g s are expected, near one that has run for 120 s %g s", cost, a, b)
		}
	}
	if a, b := next(CostNone, 0), next(CostNone, 120); !reflect.DeepEqual(a, b) {
		t.Errorf("without the setting: %+v and %+v", a, b)
	}
}
