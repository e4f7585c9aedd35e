package nsga2_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/nsga2"
)

// For any problem, points are in the cube, at their levels, evaluated and distinct, and
// the front follows its definition.
func TestPopulationsAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var variables []nsga2.Variable
		for range rapid.IntRange(1, 6).Draw(t, "columns") {
			levels := rapid.SampledFrom([]int{0, 0, 1, 2, 3, 17}).Draw(t, "levels")
			variables = append(variables, nsga2.Variable{Levels: levels, Categorical: levels > 1 && rapid.Bool().Draw(t, "categorical")})
		}
		objectives := rapid.IntRange(1, 4).Draw(t, "objectives")
		value := func(k int, x []float64) float64 { // rough, with ties, NaN and infinities
			v := 0.0
			for i, c := range x {
				v += math.Round(8*math.Sin(float64((i+1)*(k+2))*c)) / 8
			}
			switch {
			case v > 1.5:
				return math.NaN()
			case v < -1.5:
				return math.Inf(-1)
			}
			return v
		}
		p := problem(variables, objectives, func(dst, x []float64) {
			for k := range dst {
				dst[k] = value(k, x)
			}
		})
		o := nsga2.Options{
			Population:  rapid.IntRange(2, 30).Draw(t, "population"),
			Generations: rapid.IntRange(1, 8).Draw(t, "generations"),
			Reevaluate:  rapid.Bool().Draw(t, "again"),
		}
		found, err := nsga2.Minimize(t.Context(), p, o, source(rapid.Uint64().Draw(t, "seed")))
		if err != nil {
			t.Fatal(err)
		}
		checkPopulation(t, variables, found, value)
	})
}

func checkPopulation(t *rapid.T, variables []nsga2.Variable, found *nsga2.Population, value func(k int, x []float64) float64) {
	rows, objectives := found.F.Dims()
	seen := map[string]bool{}
	for i := range rows {
		x := found.X.RawRowView(i)
		if at := fmt.Sprint(x); seen[at] {
			t.Fatalf("%v is there twice", x)
		} else {
			seen[at] = true
		}
		for j, v := range x {
			levels := float64(variables[j].Levels)
			if !(v >= 0 && v <= 1) || levels > 0 && math.Abs(v*levels-0.5-math.Round(v*levels-0.5)) > 1e-12 {
				t.Fatalf("column %d of %g levels at %g", j, levels, v)
			}
		}
		for k := range objectives {
			if got, want := found.F.At(i, k), value(k, x); got != want && !(math.IsNaN(want) || math.IsInf(want, 0)) {
				t.Fatalf("objective %d at %v is %g, want %g", k, x, got, want)
			}
		}
		if math.IsNaN(found.Crowding[i]) {
			t.Fatalf("crowding %g", found.Crowding[i])
		}
	}
	for i := range rows {
		dominated := false
		for j := range rows {
			dominated = dominated || dominates(found.F.RawRowView(j), found.F.RawRowView(i))
		}
		if dominated == (found.Rank[i] == 0) {
			t.Fatalf("%v has rank %d, dominated: %t\n%v", found.F.RawRowView(i), found.Rank[i], dominated, mat.Formatted(found.F))
		}
	}
}

func dominates(a, b []float64) bool {
	better := false
	for k := range a {
		if a[k] > b[k] {
			return false
		}
		better = better || a[k] < b[k]
	}
	return better
}
