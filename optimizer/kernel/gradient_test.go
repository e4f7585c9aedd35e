package kernel_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// slope is the central difference of f at element i of v, with an error of h⁴.
func slope(f func(v []float64) float64, v []float64, i int) float64 {
	const h = 1e-3
	at := func(d float64) float64 {
		moved := slices.Clone(v)
		moved[i] += d
		return f(moved)
	}
	return (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*(1+math.Abs(want))) {
		t.Errorf("%s is %v, finite difference %v", what, got, want)
	}
}

func TestParamGradientAgainstFiniteDifferences(t *testing.T) {
	const n = 50
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 0))
			x, w := s.kernel.Transform(s.points(n, rng)), symmetric(n, rng)
			weighted := func(theta []float64) (sum float64) {
				for i := range n {
					for j := range n {
						sum += w.At(i, j) * s.definition(theta, x.RawRowView(i), x.RawRowView(j))
					}
				}
				return sum
			}
			got := make([]float64, len(s.theta))
			s.kernel.ParamGradient(got, s.theta, x, w)
			for p := range s.theta {
				near(t, "derivative "+string(rune('0'+p)), got[p], slope(weighted, s.theta, p), 1e-8)
			}
		})
	}
}

// Snapped columns have derivatives here, categorical ones have none.
func TestPairGradientAgainstFiniteDifferences(t *testing.T) {
	const n = 20
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(4, 0))
			x, w := s.points(n, rng), symmetric(n, rng)
			x.SetRow(3, x.RawRowView(7)) // at no distance Matérn-3/2 has a kink
			x.Set(3, 0, x.At(3, 0)+0.2)
			got := mat.NewDense(n, 3, nil)
			s.kernel.PairGradient(got, s.theta, x, w)
			for i := range n {
				sum := func(at []float64) (sum float64) {
					for j := range n {
						sum += w.At(i, j) * s.definition(s.theta, at, x.RawRowView(j))
					}
					return sum
				}
				for c, column := range s.columns {
					if column.Categorical {
						near(t, "a category's derivative", got.At(i, c), 0, 0)
					} else {
						near(t, "derivative", got.At(i, c), slope(sum, x.RawRowView(i), c), 1e-4)
					}
				}
			}
		})
	}
}

func TestInputGradientAgainstFiniteDifferences(t *testing.T) {
	const n = 20
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(4, 0))
			x := s.kernel.Transform(s.points(n, rng))
			point := slices.Clone(x.RawRowView(7))
			point[0] = 0.4 // away from each of x
			got, diag := mat.NewDense(n, 3, nil), []float64{1, 1, 1}
			s.kernel.InputGradient(got, s.theta, x, point)
			s.kernel.DiagGradient(diag, s.theta, point)
			for c, column := range s.columns {
				moves := column.Snap == nil && !column.Categorical
				for i := range n {
					want := 0.0
					if moves {
						want = slope(func(at []float64) float64 { return s.definition(s.theta, at, x.RawRowView(i)) }, point, c)
					}
					near(t, "derivative", got.At(i, c), want, 1e-6)
				}
				want := 0.0
				if moves {
					want = slope(func(at []float64) float64 { return s.definition(s.theta, at, at) }, point, c)
				}
				near(t, "the diagonal's derivative", diag[c], want, 1e-8)
			}
		})
	}
}
