package tpe

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestConformanceOfSeveral(t *testing.T) {
	optimizertest.RunSeveral(t, func() optimizer.Optimizer { return New(defaults(t)) })
}

func TestConformanceWithLimits(t *testing.T) {
	optimizertest.RunLimited(t, func() optimizer.Optimizer { return New(defaults(t)) })
}

// Optuna 5.0.0's split of the same values.
func TestSplitOfOptuna(t *testing.T) {
	text, err := os.ReadFile("testdata/split.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Directions []study.Direction
		Values     [][]float64
		Excess     [][]float64 // over each limit; nil without limits
		Below      int
		Good       []int
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if c.Excess != nil {
			if diff := cmp.Diff(c.Good, limitedSplit(c.Directions, c.Values, c.Excess)); diff != "" {
				t.Errorf("case %d: %d trials with %d limits (-Optuna +got):\n%s", i, len(c.Values), len(c.Excess[0]), diff)
			}
			continue
		}
		costs := make([][]float64, len(c.Values))
		for k, values := range c.Values {
			for j, v := range values {
				costs[k] = append(costs[k], c.Directions[j].Cost(v))
			}
		}
		good := firstFronts(costs, c.Below)
		slices.Sort(good)
		if diff := cmp.Diff(c.Good, good); diff != "" {
			t.Errorf("case %d: %d of %d in %d objectives (-Optuna +got):\n%s", i, c.Below, len(costs), len(c.Directions), diff)
		}
	}
}

// limitedSplit returns which trials with an excess over limits are good.
func limitedSplit(directions []study.Direction, values, excess [][]float64) []int {
	p := &optimizer.Problem{Direction: directions[0], Limits: make([]study.Limit, len(excess[0]))}
	if len(directions) > 1 {
		for _, d := range directions {
			p.Objectives = append(p.Objectives, study.Objective{Direction: d})
		}
	}
	for i := range values {
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Outcome: optimizer.OutcomeCompleted, Values: values[i], Excess: excess[i]})
	}
	return slices.Sorted(maps.Keys(split(&optimizer.Request{Problem: p})))
}

// Failed evaluations count for how many are good, and are never good themselves.
func TestSplitLeavesFailuresOut(t *testing.T) {
	r := &optimizer.Request{Problem: &optimizer.Problem{Objectives: []study.Objective{
		{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Maximize},
	}}}
	for i := range 20 {
		o := optimizer.Observation{Trial: i + 1, Outcome: optimizer.OutcomeFailed}
		if i%2 == 0 {
			o.Outcome, o.Values = optimizer.OutcomeCompleted, study.Values{float64(i), -float64(i)}
		}
		r.Observations = append(r.Observations, o)
	}
	if diff := cmp.Diff(map[int]bool{0: true, 2: true}, split(r)); diff != "" {
		t.Errorf("good (-want +got):\n%s", diff)
	}
}

// The front of two opposed objectives is dominated by more after a search than after as many
// random points.
func TestSearchesTheFront(t *testing.T) {
	for _, parallelism := range []int{1, 8} {
		searched := dominated(t, New(defaults(t)), parallelism)
		random := dominated(t, New(Options{Initial: 1000, Candidates: 1}), parallelism) // a Sobol sequence
		if searched < random+0.05 {
			t.Errorf("%d at once: the points dominate %.3f, a Sobol sequence %.3f, want at least 0.05 more", parallelism, searched, random)
		}
	}
}

// dominated returns the mean hypervolume, of 3 seeds, after 100 points in four dimensions.
func dominated(t *testing.T, o optimizer.Optimizer, parallelism int) float64 {
	t.Helper()
	var total float64
	for seed := range uint64(3) {
		s := optimizertest.NewSession(t, o, optimizertest.Cube(t, 4, 0, 1), seed)
		s.Problem.Objectives = []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Maximize}}
		var found [][]float64
		s.RunAll(100, parallelism, func(p study.Point) study.Values {
			x, away := p["x1"].(float64), 0.0
			for _, name := range []string{"x2", "x3", "x4"} {
				away += p[name].(float64) / 3
			}
			found = append(found, []float64{x + away, 1 - x + away})
			return study.Values{x + away, x - 1 - away}
		})
		total += pareto.Hypervolume(found, []float64{2, 2}) / 3
	}
	return total
}
