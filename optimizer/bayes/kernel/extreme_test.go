package kernel_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// Corners, duplicates and extreme but plausible hyperparameters give finite matrices
// and gradients.
func TestExtremesStayFinite(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(1, 20).Draw(t, "n")
				coordinate := rapid.SampledFrom([]float64{0, 5e-324, 1e-9, 0.5, 1 - 1e-16, 1})
				x := mat.NewDense(n, len(s.columns), rapid.SliceOfN(coordinate, 3*n, 3*n).Draw(t, "x"))
				x = s.kernel.Transform(x)
				ends := rapid.SampledFrom([]float64{math.Log(1e-3), 0, math.Log(10), math.Log(1e6)})
				theta := rapid.SliceOfN(ends, len(s.theta), len(s.theta)).Draw(t, "theta")
				gram, params, inputs := mat.NewSymDense(n, nil), make([]float64, len(theta)), mat.NewDense(n, 3, nil)
				points := s.kernel.Prepare(theta, x, true)
				points.Gram(gram)
				points.ParamGradient(params, gram)
				points.WeightedGradient(inputs, points, mat.DenseCopyOf(gram))
				all := slices.Concat(gram.RawSymmetric().Data, params, inputs.RawMatrix().Data)
				if slices.ContainsFunc(all, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
					t.Errorf("not finite: %v", all)
				}
			})
		})
	}
}

func TestManyColumnsAndFewPoints(t *testing.T) {
	const n, d = 3, 300
	columns := kernel.Continuous(d)
	k := kernel.NewWarped(kernel.NewSum(kernel.NewMatern32(columns), kernel.NewLinear(columns)), columns)
	definition := warpedDefinition(d+2, columns, addition(d+1, maternDefinition(columns, 1.5), linearDefinition(columns)))
	rng := rand.New(rand.NewPCG(1, 0))
	x, w, theta := uniform(n, d, rng), symmetric(n, rng), make([]float64, k.NumParams())
	for c := range d {
		theta[c] = 2
	}
	weighted := func(theta []float64) (sum float64) {
		for i := range n {
			for j := range n {
				sum += w.At(i, j) * definition(theta, x.RawRowView(i), x.RawRowView(j))
			}
		}
		return sum
	}
	got := make([]float64, len(theta))
	k.Prepare(theta, x, true).ParamGradient(got, w)
	for _, p := range []int{0, d - 1, d, d + 1, d + 2, 3*d + 1} {
		near(t, "derivative", got[p], slope(weighted, theta, p), 1e-8)
	}
}

// The points inside have far more columns than there are points, and than the kernel has.
func TestManyBranchesAndFewPoints(t *testing.T) {
	const n, values = 3, 40
	columns := []kernel.Column{{}, {Categorical: true}}
	var branches []kernel.Branch
	for v := range values {
		branches = append(branches, kernel.Branch{Column: 1, Code: float64(v), Numeric: []int{0}})
	}
	grown := kernel.BranchedColumns(columns, branches)
	k := kernel.NewBranched(kernel.NewMatern52(grown), columns, branches)
	definition := branchedDefinition(branches, maternDefinition(grown, 2.5))
	x := mat.NewDense(n, 2, []float64{0.2, 0, 0.3, 0, 0.9, 39})
	w, theta := symmetric(n, rand.New(rand.NewPCG(1, 0))), make([]float64, k.NumParams())
	got := mat.NewDense(n, 2, nil)
	points := k.Prepare(theta, x, true)
	points.WeightedGradient(got, points, mat.DenseCopyOf(w))
	for i := range n {
		sum := func(at []float64) (sum float64) {
			for j := range n {
				sum += w.At(i, j) * definition(theta, at, x.RawRowView(j))
			}
			return sum
		}
		near(t, "derivative", got.At(i, 0), slope(sum, x.RawRowView(i), 0), 1e-6)
	}
}

func TestWrongShapesPanic(t *testing.T) {
	k := kernel.NewWarped(kernel.NewMatern32(kernel.Continuous(2)), kernel.Continuous(2))
	theta, x := make([]float64, 7), mat.NewDense(3, 2, nil)
	points := k.Prepare(theta, x, false)
	for name, f := range map[string]func(){
		"no columns":              func() { kernel.NewLinear(nil) },
		"no terms":                func() { kernel.NewSum() },
		"terms of other columns":  func() { kernel.NewSum(k, kernel.NewLinear(kernel.Continuous(3))) },
		"inner of other columns":  func() { kernel.NewWarped(k, kernel.Continuous(3)) },
		"inner without branches":  func() { kernel.NewBranched(k, kernel.Continuous(2), []kernel.Branch{{Numeric: []int{1}}}) },
		"hyperparameters":         func() { k.Prepare(theta[:6], x, false) },
		"columns":                 func() { k.Transform(mat.NewDense(3, 3, nil)) },
		"Gram's size":             func() { points.Gram(mat.NewSymDense(2, nil)) },
		"Cross's size":            func() { points.Cross(mat.NewDense(3, 2, nil), points) },
		"Diag's length":           func() { points.Diag(make([]float64, 2)) },
		"ParamGradient's length":  func() { k.Prepare(theta, x, true).ParamGradient(theta[:6], mat.NewSymDense(3, nil)) },
		"ParamGradient's weights": func() { k.Prepare(theta, x, true).ParamGradient(make([]float64, 7), mat.NewSymDense(2, nil)) },
		"WeightedGradient's size": func() {
			points.WeightedGradient(mat.NewDense(3, 3, nil), k.Prepare(theta, x, true), mat.NewDense(1, 3, nil))
		},
		"rows of weights": func() {
			points.WeightedGradient(mat.NewDense(3, 2, nil), k.Prepare(theta, x, true), mat.NewDense(2, 3, nil))
		},
		"no slopes": func() { points.DiagGradient(mat.NewDense(3, 2, nil)) },
		"points of two kernels": func() {
			other := kernel.NewMatern32(kernel.Continuous(2))
			points.Cross(mat.NewDense(3, 3, nil), other.Prepare(theta[:3], x, false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
