package testfunc_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/optimize/functions"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
)

// agree reports whether two values differ by rounding at most.
func agree(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// testdata/reference.py repeats the definitions with 40 digits.
func TestAgainstReference(t *testing.T) {
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var reference []struct {
		Name   string      `json:"name"`
		Lower  []float64   `json:"lower"`
		Upper  []float64   `json:"upper"`
		Points [][]float64 `json:"points"`
		Values []float64   `json:"values"`
	}
	if err := json.Unmarshal(data, &reference); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range reference {
		names = append(names, r.Name)
		f, err := testfunc.Get(r.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.Equal(f.Lower, r.Lower) || !slices.Equal(f.Upper, r.Upper) {
			t.Errorf("%s is on %v to %v, the reference on %v to %v", f.Name, f.Lower, f.Upper, r.Lower, r.Upper)
			continue
		}
		for i, x := range r.Points {
			if got := f.Value(x); !agree(got, r.Values[i]) {
				t.Errorf("%s(%v) = %.17g, the reference says %.17g", f.Name, x, got, r.Values[i])
			}
		}
	}
	for _, f := range testfunc.All() {
		if f.Feasible != nil { // simple formulas, and functions of the reference with a constraint
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, testfunc.Names()) {
		t.Errorf("the reference has %v, want all of %v", names, testfunc.Names())
	}
}

// Gonum has independent implementations of some functions. Its CrossInTray is left out:
// it divides by π under the root, where the sources divide the root.
func TestAgainstGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, gonum := range map[string]interface{ Func([]float64) float64 }{
		"ackley-6": functions.Ackley{}, "beale": functions.Beale{}, "branin": functions.BraninHoo{},
		"bukin": functions.Bukin6{}, "dixon-price-10": functions.DixonPrice{},
		"drop-wave": functions.DropWave{}, "egg-holder": functions.Eggholder{}, "griewank-10": functions.Griewank{},
		"holder-table": functions.HolderTable{}, "levy-10": functions.Levy{}, "levy13": functions.Levy13{},
		"rastrigin-10": functions.Rastrigin{}, "rosenbrock-10": functions.ExtendedRosenbrock{},
		"shubert01": functions.Shubert{}, "six-hump-camel": functions.CamelSix{}, "three-hump-camel": functions.CamelThree{},
	} {
		f, err := testfunc.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			u := make([]float64, f.Dim())
			for i := range u {
				u[i] = rng.Float64()
			}
			x := f.Scale(u)
			if got, want := f.Value(x), gonum.Func(x); !agree(got, want) {
				t.Fatalf("%s(%v) = %.17g, gonum's is %.17g", name, x, got, want)
			}
		}
	}
}
