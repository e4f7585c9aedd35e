package diagnose_test

import (
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/diagnose"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
)

// each applies f to each row.
func each(f func(x []float64) float64) func(*mat.Dense) []float64 {
	return func(x *mat.Dense) []float64 {
		rows, _ := x.Dims()
		v := make([]float64, rows)
		for i := range v {
			v[i] = f(x.RawRowView(i))
		}
		return v
	}
}

// The function of Ishigami and Homma (1990) with a = 7 and b = 0.1, whose indices
// Saltelli et al. (2000, Sensitivity Analysis, section 2.9) derive, and a fourth input
// without effect.
func TestSobolOfIshigami(t *testing.T) {
	const a, b, n = 7.0, 0.1, 1 << 13
	f := each(func(u []float64) float64 {
		x := func(i int) float64 { return math.Pi * (2*u[i] - 1) }
		return 1e3 + math.Sin(x(0)) + a*math.Pow(math.Sin(x(1)), 2) + b*math.Pow(x(2), 4)*math.Sin(x(0))
	})
	pi4 := math.Pow(math.Pi, 4)
	first := []float64{(1 + b*pi4/5) * (1 + b*pi4/5) / 2, a * a / 8, 0, 0}
	interaction := 8 * b * b * pi4 * pi4 / 225
	total := []float64{first[0] + interaction, first[1], interaction, 0}
	variance := first[0] + first[1] + interaction
	s, err := diagnose.Sobol(f, 4, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", s.Mean, 1e3+a/2, 1e-4)
	near(t, "variance", s.Variance, variance, 0.01)
	check(t, s, first, total, variance, 0.01)
}

// The g-function of Sobol' (Saltelli and Sobol' 1995).
func TestSobolOfG(t *testing.T) {
	weights := []float64{0, 0.5, 3, 9, 99, 99}
	f := each(func(u []float64) float64 {
		product := 1.0
		for i, a := range weights {
			product *= (math.Abs(4*u[i]-2) + a) / (1 + a)
		}
		return product
	})
	all := 1.0
	first, total := make([]float64, len(weights)), make([]float64, len(weights))
	for i, a := range weights {
		first[i] = 1 / (3 * (1 + a) * (1 + a))
		all *= 1 + first[i]
	}
	for i, v := range first {
		total[i] = v * all / (1 + v)
	}
	s, err := diagnose.Sobol(f, len(weights), 1<<13, 2)
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, first, total, all-1, 0.01)
}

// check compares indices with parts of a variance.
func check(t *testing.T, s *diagnose.Sensitivity, first, total []float64, variance, tolerance float64) {
	t.Helper()
	for i := range first {
		if want := first[i] / variance; !(math.Abs(s.First[i]-want) <= tolerance) {
			t.Errorf("first-order index %d is %v, want %v", i, s.First[i], want)
		}
		if want := total[i] / variance; !(math.Abs(s.Total[i]-want) <= tolerance) {
			t.Errorf("total index %d is %v, want %v", i, s.Total[i], want)
		}
	}
}

func TestSobolOfAConstant(t *testing.T) {
	s, err := diagnose.Sobol(each(func([]float64) float64 { return 0.1 }), 3, 64, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.First {
		if s.First[i] != 0 || s.Total[i] != 0 {
			t.Errorf("input %d has the indices %v and %v of a constant", i, s.First[i], s.Total[i])
		}
	}
}

func TestSobolOfTooMany(t *testing.T) {
	if _, err := diagnose.Sobol(nil, design.MaxDim, 64, 1); !errors.Is(err, design.ErrDimension) {
		t.Errorf("%v; want ErrDimension", err)
	}
}
