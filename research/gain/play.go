package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/research/tabulated"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// batch is how many trials run at once, in batches. The forecasts are made at the moments.
const batch = 5

var moments = []int{25, 50, 100}

// noise ends the name of a table whose values are drawn from the repetitions; else they are the means.
const noise = "+noise"

// forecast is what was expected of more trials of a run, and what came of it. All gains are shares of the distance from the best to
// the median value at that moment.
type forecast struct {
	Task      string  `json:"task"`
	Algorithm string  `json:"algorithm"`
	Seed      int     `json:"seed"`
	After     int     `json:"after"`
	Expected  float64 `json:"expected"`
	Most      float64 `json:"most"`
	Gained    float64 `json:"gained"`
}

func (f *forecast) key() string { return fmt.Sprint(f.Task, " ", f.Algorithm, " ", f.Seed) }

// task is a function to minimise, or a table. Truth has no noise, and is NaN where an evaluation fails.
type task struct {
	name  string
	space *space.Space
	look  func(p study.Point, rng *rand.Rand) float64
	truth func(p study.Point) float64
}

func newTask(folder, name string) (*task, error) {
	if path := table(folder, name); path != "" {
		return ofTable(path, name)
	}
	f, err := testfunc.Get(name)
	if err != nil {
		return nil, err
	}
	s := &study.Study{Spec: study.Spec{Objective: study.Objective{Metric: "value", Direction: study.Minimize}}}
	for i := range f.Lower {
		s.Spec.Parameters = append(s.Spec.Parameters, study.Parameter{
			Name: fmt.Sprint("x", i), Type: study.Float, Min: &f.Lower[i], Max: &f.Upper[i], Scale: study.Linear,
		})
	}
	t := &task{name: name, truth: func(p study.Point) float64 {
		x := make([]float64, f.Dim())
		for i := range x {
			x[i], _ = p[fmt.Sprint("x", i)].(float64)
		}
		return f.Value(x)
	}}
	t.look = func(p study.Point, _ *rand.Rand) float64 { return t.truth(p) }
	t.space, err = celspace.Of(s)
	return t, err
}

func ofTable(path, name string) (*task, error) {
	of, err := tabulated.Read(path)
	if err != nil {
		return nil, err
	}
	t := &task{name: name, space: of.Space, truth: func(p study.Point) float64 {
		i, ok := of.At[of.Space.Key(p)]
		if !ok {
			return math.NaN()
		}
		return stat.Mean(of.Rows[i].Losses, nil)
	}}
	t.look = func(p study.Point, rng *rand.Rand) float64 {
		loss, _, ok := of.Look(p, rng)
		if !ok {
			return math.NaN()
		}
		return loss
	}
	if !strings.HasSuffix(name, noise) {
		t.look = func(p study.Point, _ *rand.Rand) float64 { return t.truth(p) }
	}
	return t, nil
}

// play plays a study, and makes a forecast at each moment.
func play(ctx context.Context, t *task, algorithm string, seed int) ([]forecast, error) {
	o, err := registry.New(algorithm, nil)
	if err != nil {
		return nil, err
	}
	forecaster, ok := o.(optimizer.Forecaster)
	if !ok {
		return nil, errors.New("it makes no forecasts; want hebo or gp")
	}
	longest := moments[len(moments)-1] + optimizer.GainTrials
	s := session.Session{Optimizer: o, Problem: optimizer.Problem{
		Space: t.space, Direction: study.Minimize, MaxTrials: longest, Parallelism: batch, Seed: lines.Seed(t.name, seed),
	}}
	rng := rand.New(rand.NewPCG(s.Problem.Seed, 1))
	var list []forecast
	var values []float64
	best := map[int]float64{} // by the number of trials: the true value of the point that is recommended then
	for len(s.Problem.Observations) < longest {
		got, err := s.Ask(ctx, batch)
		if err != nil {
			return nil, err
		}
		for i, suggestion := range got {
			o := optimizer.Observation{Trial: s.Asked() - len(got) + 1 + i, Point: suggestion.Point, Outcome: optimizer.OutcomeFailed}
			if v := t.look(suggestion.Point, rng); !math.IsNaN(v) {
				o.Outcome, o.Values = optimizer.OutcomeCompleted, study.Values{v}
				values = append(values, v)
			}
			s.Tell(o)
		}
		n := len(s.Problem.Observations)
		if !slices.Contains(moments, n) && !slices.Contains(moments, n-optimizer.GainTrials) {
			continue
		}
		recommended := s.Snapshot().Best()
		if strings.HasSuffix(t.name, noise) {
			if recommended, err = s.Recommend(ctx); err != nil {
				return nil, err
			}
		}
		best[n] = t.truth(recommended.Point)
		if !slices.Contains(moments, n) {
			continue
		}
		g, err := forecaster.Forecast(ctx, s.Snapshot(), s.State)
		if err != nil {
			return nil, err
		}
		if g == nil { // nothing is known
			continue
		}
		sorted := slices.Sorted(slices.Values(values))
		scale := sorted[len(sorted)/2] - sorted[0]
		list = append(list, forecast{
			Task: t.name, Algorithm: algorithm, Seed: seed, After: n, Expected: g.Expected / scale, Most: g.Most / scale, Gained: scale,
		})
	}
	for i := range list {
		list[i].Gained = (best[list[i].After] - best[list[i].After+optimizer.GainTrials]) / list[i].Gained
	}
	return list, nil
}
