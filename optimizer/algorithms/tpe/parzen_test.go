package tpe

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func number(v float64) *float64 { return &v }

// parameters are those of testdata/densities.py.
func parameters() []study.Parameter {
	return []study.Parameter{
		{Name: "plain", Type: study.Float, Min: number(-5), Max: number(10)},
		{Name: "log", Type: study.Float, Min: number(1e-5), Max: number(1), Scale: study.Log},
		{Name: "int", Type: study.Int, Min: number(1), Max: number(20)},
		{Name: "intlog", Type: study.Int, Min: number(1), Max: number(256), Scale: study.Log},
		{Name: "grid", Type: study.Float, Min: number(0), Max: number(2), Step: number(0.25)},
		{Name: "choice", Type: study.Categorical, Values: []any{"a", "b", "c"}},
	}
}

type oracle struct {
	Cases []struct {
		Points, At []map[string]any
		Logs       []float64
	}
	Good    map[string]int
	Weights []float64
}

// Optuna 5.0.0's densities of the same points at the same places.
func TestDensitiesOfOptuna(t *testing.T) {
	text, err := os.ReadFile("testdata/densities.json")
	if err != nil {
		t.Fatal(err)
	}
	var want oracle
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for n, c := range want.Cases {
		var chosen []study.Parameter
		for _, p := range parameters() {
			if _, given := c.At[0][p.Name]; given {
				chosen = append(chosen, p)
			}
		}
		space := optimizertest.Space(t, chosen, nil)
		encoding := optimizer.NewEncoding(space)
		encode := func(raw map[string]any) []float64 {
			p, err := space.Normalize(raw)
			if err != nil {
				t.Fatal(err)
			}
			return encoding.Encode(p)
		}
		var points [][]float64
		for _, p := range c.Points {
			points = append(points, encode(p))
		}
		density := newParzen(newGroups(encoding)[0].columns, points, ramp(len(points)), true)
		for i, at := range c.At {
			got := density.logDensity(encode(at), nil)
			if math.Abs(got-c.Logs[i]) > 1e-9*max(1, math.Abs(got)) {
				t.Errorf("case %d, %d points, at %v: log density %.12g, Optuna has %.12g", n, len(points), at, got, c.Logs[i])
			}
		}
	}
	for n, good := range want.Good {
		var count int
		if _, err := fmt.Sscan(n, &count); err != nil {
			t.Fatal(err)
		}
		if got := goodOf(count, 1); got != good {
			t.Errorf("%d of %d evaluations are good, in Optuna %d", got, count, good)
		}
	}
	if diff := cmp.Diff(want.Weights, ramp(len(want.Weights)),
		cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-14 })); diff != "" {
		t.Errorf("weights (-Optuna +got):\n%s", diff)
	}
}

// Draws have the distribution whose density is computed: each level of a discrete
// column as often as its probability says, and a float in each tenth of its range as
// often as the integral of its density.
func TestDrawsFollowTheDensity(t *testing.T) {
	const draws = 20000
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range parameters() {
		encoding := optimizer.NewEncoding(optimizertest.Space(t, []study.Parameter{p}, nil))
		columns := newGroups(encoding)[0].columns
		var points [][]float64
		for range 5 {
			x := rng.Float64()
			points = append(points, encoding.Encode(encoding.Decode([]float64{x})))
		}
		density := newParzen(columns, points, ramp(len(points)), true)
		bins := columns[0].Levels
		probability := func(k int) float64 {
			return math.Exp(density.logDensity([]float64{p.ToUnit(p.At(k))}, nil))
		}
		which := func(u float64) int { k, _ := p.Index(p.FromUnit(u)); return k }
		if bins == 0 {
			bins = 10
			probability = func(k int) float64 { // the midpoint rule
				var sum float64
				for i := range 100 {
					sum += math.Exp(density.logDensity([]float64{(float64(k) + (float64(i)+0.5)/100) / 10}, nil))
				}
				return sum / 1000
			}
			which = func(u float64) int { return min(int(u*10), 9) }
		}
		counts, x, total := make([]float64, bins), []float64{0}, 0.0
		for range draws {
			density.sample(x, rng)
			counts[which(x[0])]++
		}
		for k, got := range counts {
			want := probability(k)
			total += want
			if sd := math.Sqrt(want * (1 - want) / draws); math.Abs(got/draws-want) > 5*sd+1e-4 {
				t.Errorf("%s: level %d was drawn with frequency %.4f, its probability is %.4f", p.Name, k, got/draws, want)
			}
		}
		if math.Abs(total-1) > 1e-3 {
			t.Errorf("%s: the probabilities add up to %g", p.Name, total)
		}
	}
}
