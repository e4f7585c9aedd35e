package judge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

const last = 30

// spaceOf returns the space of parameters from 0 to 1.
func spaceOf(t testing.TB, names ...string) *space.Space {
	t.Helper()
	var parameters []study.Parameter
	for _, name := range names {
		parameters = append(parameters, study.Parameter{Name: name, Type: study.Float, Min: new(0.), Max: new(1.), Scale: study.Linear})
	}
	s, err := space.Of(&study.Study{Spec: study.Spec{
		Objective: study.Objective{Metric: "loss", Direction: study.Minimize}, Parameters: parameters,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// level is where a trial ends: the nearer x is to 0.3, the lower.
func level(x float64) float64 { return (x - 0.3) * (x - 0.3) }

// tell adds a trial that has reported up to a step.
func (q *Question) tell(number int, x float64, step int64, runs bool) {
	point := study.Point{"x": x, "y": 0.5}
	c := pruner.Curve{Trial: number}
	for s := int64(1); s <= step; s++ {
		c.Reports = append(c.Reports, curves.Report{Step: s, Cost: level(x) + 0.5/float64(s)})
	}
	q.Curves = append(q.Curves, c)
	if runs {
		q.Problem.Pending = append(q.Problem.Pending, optimizer.Pending{Trial: number, Point: point})
		return
	}
	q.Problem.Observations = append(q.Problem.Observations, optimizer.Observation{
		Trial: number, Point: point, Outcome: optimizer.OutcomeCompleted, Values: study.Values{level(x) + 0.5/float64(step)},
	})
}

// question asks of trial 13, whose parameter is x and which has reported up to a step. Twelve trials
// have ended, and the last ones that began are near the best place.
func question(t testing.TB, x float64, step int64) *Question {
	q := &Question{Trial: 13, Last: last, Direction: study.Minimize, Problem: &optimizer.Problem{Space: spaceOf(t, "x", "y"), Seed: 1}}
	for i := range 12 {
		q.tell(i+1, float64(i)/11, last, false)
	}
	q.tell(13, x, step, true)
	for i := range 6 {
		q.tell(14+i, 0.25+0.02*float64(i), 1, true)
	}
	return q
}

func decide(t testing.TB, q *Question) Answer {
	t.Helper()
	a, err := Decide(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A trial whose place and curve are bad is stopped, and one that is as good as others goes on.
func TestDecide(t *testing.T) {
	bad := decide(t, question(t, 0.95, 6))
	if !bad.Stop || !strings.HasPrefix(bad.Reason, "at step 6 of 30 it is expected to end at 0.4") {
		t.Errorf("a bad trial: %+v", bad)
	}
	if want := level(0.95) + 0.5/last; math.Abs(bad.Cost-want) > 0.05 {
		t.Errorf("a bad trial is expected to end at %v, and ends at %v", bad.Cost, want)
	}
	for _, x := range []float64{0.25, 0.3, 0.35} {
		q := question(t, x, 6)
		for i := range q.Curves[12].Reports { // it does better than its place and others promise
			q.Curves[12].Reports[i].Cost -= 0.03
		}
		if good := decide(t, q); good.Stop || good.Reason != "" {
			t.Errorf("a good trial at %v: %+v", x, good)
		}
	}
}

// An answer says of all trials that run where they are expected to end, as Ends does.
func TestDecideForeseesWhatRuns(t *testing.T) {
	q := question(t, 0.95, 6)
	q.tell(20, 0.5, 0, true) // it has reported nothing
	a := decide(t, q)
	ends, _, err := Ends(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]float64{}
	for _, e := range ends {
		if e.Trial >= 13 {
			want[e.Trial] = e.Cost
		}
	}
	got := map[int]float64{}
	for _, f := range a.Running {
		got[f.Trial] = f.Cost
	}
	if !maps.Equal(got, want) || len(got) != 7 || got[13] != a.Cost {
		t.Errorf("%v, want %v and trial 13 at %v", got, want, a.Cost)
	}
}

// What people read is in the metric's own direction.
func TestReasonHasTheMetricsValues(t *testing.T) {
	q := question(t, 0.95, 6)
	q.Direction = study.Maximize
	if a := decide(t, q); !a.Stop || !strings.Contains(a.Reason, "end at -0.4") || a.Cost < 0 {
		t.Errorf("%+v", a)
	}
}

// The same question has the same answer, and what is remembered changes the answer little.
func TestDecisionsAreReproducible(t *testing.T) {
	a, b := decide(t, question(t, 0.8, 4)), decide(t, question(t, 0.8, 4))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%+v and %+v", a, b)
	}
	q := question(t, 0.8, 4)
	q.Memory = a.Memory
	if c := decide(t, q); c.Stop != a.Stop || math.Abs(c.Cost-a.Cost) > 0.02 || c.Memory != a.Memory {
		t.Errorf("with the memory %+v, without %+v", c, a)
	}
}

// After an edit of the space the memory may be of other parameters, and the trial outside.
func TestSpacesThatWereEdited(t *testing.T) {
	q := question(t, 0.95, 6)
	memory := decide(t, q).Memory
	q.Memory, q.Problem.Space = memory, spaceOf(t, "x")
	for i := range q.Problem.Observations {
		delete(q.Problem.Observations[i].Point, "y")
	}
	for i := range q.Problem.Pending {
		delete(q.Problem.Pending[i].Point, "y")
	}
	if a := decide(t, q); !a.Stop || reflect.DeepEqual(a.Memory, memory) {
		t.Errorf("of other parameters: %+v", a)
	}
	q = question(t, 0.95, 6)
	q.Memory, q.Problem.Pending = memory, q.Problem.Pending[1:]
	if a := decide(t, q); a.Stop || a.Memory != memory {
		t.Errorf("outside: %+v", a)
	}
}

// The observations of a space with many parameters keep their points packed.
func TestManyParameters(t *testing.T) {
	names := []string{"x", "y"}
	for i := range 18 {
		names = append(names, fmt.Sprint("z", i))
	}
	asked := func(pack bool) Answer {
		q := question(t, 0.95, 6)
		q.Problem.Space = spaceOf(t, names...)
		for i := range q.Problem.Observations {
			o := &q.Problem.Observations[i]
			for _, name := range names[2:] {
				o.Point[name] = 0.5
			}
			if pack {
				if *o = o.Pack(names); o.Packed == nil {
					t.Fatal("a point of 20 parameters is not packed")
				}
			}
		}
		for _, p := range q.Problem.Pending {
			for _, name := range names[2:] {
				p.Point[name] = 0.5
			}
		}
		return decide(t, q)
	}
	if packed, plain := asked(true), asked(false); !packed.Stop || !reflect.DeepEqual(packed, plain) {
		t.Errorf("with packed points %+v, with others %+v", packed, plain)
	}
}

// Trials that failed or were added report nothing, and the model is told of others only.
func TestTrialsWithoutReports(t *testing.T) {
	q := question(t, 0.95, 6)
	for i := range 20 {
		q.Problem.Observations = append(q.Problem.Observations, optimizer.Observation{
			Trial: 100 + i, Point: study.Point{"x": 0.1, "y": 0.1}, Outcome: optimizer.OutcomeFailed,
		})
	}
	if a, b := decide(t, q), decide(t, question(t, 0.95, 6)); !reflect.DeepEqual(a, b) {
		t.Errorf("with failed trials %+v, without %+v", a, b)
	}
}

// Of many trials the model has those that run, the best and the latest.
func TestTrialsAreBounded(t *testing.T) {
	q := &Question{Trial: 2, Last: last, Problem: &optimizer.Problem{Space: spaceOf(t, "x", "y")}}
	for i := range 2000 {
		q.tell(i+1, math.Abs(math.Sin(float64(i))), last, i == 1 || i == 700)
	}
	_, list, at := places(q, optimizer.NewEncoding(q.Problem.Space))
	if len(list) != curves.MostCurves || at < 0 || list[at].Runs {
		t.Fatalf("%d trials, that of the question is number %d", len(list), at)
	}
	runs, good := 0, 0
	for _, c := range list {
		if c.Runs {
			runs++
		} else if math.Abs(c.X[0]-0.3) < 0.05 {
			good++
		}
	}
	if runs != 1 || good < curves.MostCurves/2-2 {
		t.Errorf("%d run, %d are good", runs, good)
	}
	q.Problem.Pending = nil
	for i := range 400 {
		q.tell(3000+i, 0.5, 1, true)
	}
	if _, list, _ := places(q, optimizer.NewEncoding(q.Problem.Space)); len(list) < 400 {
		t.Errorf("of 400 that run %d are left", len(list))
	}
}

func TestDecideEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := Decide(ctx, question(t, 0.5, 3)); !errors.Is(err, context.Canceled) || a.Stop {
		t.Errorf("%+v, %v", a, err)
	}
}

func BenchmarkDecide(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 0))
	for _, trials := range []int{200, 2000} {
		q := &Question{Trial: trials, Last: 50, Problem: &optimizer.Problem{Space: spaceOf(b, "x", "y")}}
		for i := range trials {
			q.tell(i+1, rng.Float64(), 1+rng.Int64N(50), i >= trials-8)
		}
		for _, fitted := range []bool{false, true} {
			b.Run(fmt.Sprintf("trials=%d/fitted=%v", trials, fitted), func(b *testing.B) {
				a, err := Decide(b.Context(), q)
				if err != nil {
					b.Fatal(err)
				}
				asked := *q
				if !fitted {
					asked.Memory = a.Memory
				}
				for b.Loop() {
					if _, err := Decide(b.Context(), &asked); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestExpected checks what is kept of a trial that is stopped: a path to the last step, where the bounds hold
// the truth, not worse than what it has reached, and a level that it does not reach; in the metric's own direction.
func TestExpected(t *testing.T) {
	if a := decide(t, question(t, 0.3, 6)); a.Expected != nil && !a.Stop {
		t.Errorf("of a trial that goes on, %+v is kept", a.Expected)
	}
	for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
		q := question(t, 0.95, 6)
		q.Direction = direction
		e := decide(t, q).Expected
		if e == nil || len(e.Steps) != 5 || e.Steps[4] != last || len(e.Values) != 5 || len(e.Low) != 5 || len(e.High) != 5 {
			t.Fatalf("%s: %+v", direction, e)
		}
		reached := direction.Cost(level(0.95) + 0.5/6)
		for i, step := range e.Steps {
			truth := direction.Cost(level(0.95) + 0.5/float64(step))
			if step <= 6 || i > 0 && step <= e.Steps[i-1] || e.Low[i] > e.Values[i] || e.Values[i] > e.High[i] ||
				step == last && (e.Low[i] > truth || e.High[i] < truth) || direction.Better(reached, e.Values[i]) {
				t.Errorf("%s: at step %d it ends at %v, and %v is expected between %v and %v", direction, step, truth, e.Values[i], e.Low[i],
					e.High[i])
			}
		}
		if !direction.Better(e.Level, e.Values[4]) {
			t.Errorf("%s: it is expected to end at %v, and had to beat %v", direction, e.Values[4], e.Level)
		}
	}
}

// TestEnds checks where all trials of a question are expected to end, by where they end, and that its margin is what
// Decide decides by.
func TestEnds(t *testing.T) {
	for _, x := range []float64{0.3, 0.95} {
		q := question(t, x, 6)
		ends, memory, err := Ends(t.Context(), q)
		if err != nil || len(ends) != 19 || memory.hyperparameters == nil {
			t.Fatalf("%d ends, %v", len(ends), err)
		}
		for _, e := range ends {
			if !(e.Low <= e.Cost && e.Cost <= e.Unlucky && e.Unlucky <= e.High) {
				t.Errorf("trial %d: %+v", e.Trial, e)
			}
			if truth := level(float64(e.Trial-1)/11) + 0.5/last; e.Trial <= 12 && math.Abs(e.Cost-truth) > 0.02 {
				t.Errorf("trial %d ended at %v, and %v is expected", e.Trial, truth, e.Cost)
			}
			if stop := decide(t, q).Stop; e.Trial == q.Trial && stop != (e.Margin > Patience) {
				t.Errorf("a trial at %v is stopped: %t, with the margin %v", x, stop, e.Margin)
			}
		}
	}
	q := question(t, 0.3, 6)
	q.Trial = 99
	if ends, _, err := Ends(t.Context(), q); err != nil || ends != nil {
		t.Errorf("of a trial that is not there: %v, %v", ends, err)
	}
}
