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
			s.kernel.Prepare(s.theta, x, true).ParamGradient(got, w)
			for p := range s.theta {
				near(t, "derivative "+string(rune('0'+p)), got[p], slope(weighted, s.theta, p), 1e-8)
			}
		})
	}
}

func TestPointsGradientsAgainstFiniteDifferences(t *testing.T) {
	const n, m = 20, 3
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(4, 0))
			x, y := s.kernel.Transform(s.points(n, rng)), s.kernel.Transform(s.points(m, rng))
			weights := uniform(m, n, rng)
			px, py := s.kernel.Prepare(s.theta, x, false), s.kernel.Prepare(s.theta, y, true)
			each, same, diag := mat.NewDense(m, 3, nil), mat.NewDense(m, 3, nil), mat.NewDense(m, 3, nil)
			px.WeightedGradient(each, py, weights)
			px.WeightedGradient(same, py, weights.Slice(1, 2, 0, n).(*mat.Dense))
			py.DiagGradient(diag)
			for j := range m {
				sum := func(row int) func(at []float64) float64 {
					return func(at []float64) (sum float64) {
						for i := range n {
							sum += weights.At(row, i) * s.definition(s.theta, at, x.RawRowView(i))
						}
						return sum
					}
				}
				alone := func(at []float64) float64 { return s.definition(s.theta, at, at) }
				for c, column := range s.columns {
					if column.Snap != nil || column.Categorical {
						near(t, "a step's derivatives", math.Abs(each.At(j, c))+math.Abs(same.At(j, c))+math.Abs(diag.At(j, c)), 0, 0)
						continue
					}
					point := y.RawRowView(j)
					near(t, "derivative", each.At(j, c), slope(sum(j), point, c), 1e-6)
					near(t, "derivative with common weights", same.At(j, c), slope(sum(1), point, c), 1e-6)
					near(t, "the diagonal's derivative", diag.At(j, c), slope(alone, point, c), 1e-8)
				}
			}
		})
	}
}
