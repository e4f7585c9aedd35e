package kernel_test

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// covariance is a kernel written as its definition reads, for snapped points.
type covariance func(theta, x, y []float64) float64

// subject is a kernel with its definition, columns and hyperparameters.
type subject struct {
	name       string
	kernel     *kernel.Kernel
	definition covariance
	columns    []kernel.Column
	theta      []float64
}

// subjects returns kernels of all kinds over the columns of mixed.
func subjects() []subject {
	plain := kernel.WithoutSnap(mixed())
	sum := kernel.NewSum(kernel.NewMatern32(plain), kernel.NewLinear(plain))
	hebo := addition(4, maternDefinition(plain, 1.5), linearDefinition(plain))
	grown := kernel.BranchedColumns(mixed(), branches())
	half := addition(4, maternDefinition(plain, 2.5), maternDefinition(plain, 1.5))
	snapped := []kernel.Column{{Snap: grid(5)}}
	stepped := kernel.NewSum(kernel.NewMatern32(snapped), kernel.NewLinear(snapped))
	return []subject{
		{"Matérn-5/2", kernel.NewMatern52(mixed()), maternDefinition(mixed(), 2.5), mixed(), []float64{-0.7, 0.2, 0.5, 0.3}},
		{"Matérn-3/2", kernel.NewMatern32(mixed()), maternDefinition(mixed(), 1.5), mixed(), []float64{-0.7, 0.2, 0.5, 0.3}},
		{"linear", kernel.NewLinear(mixed()), linearDefinition(mixed()), mixed(), []float64{-0.4}},
		{
			"linear, continuous", kernel.NewLinear(kernel.Continuous(3)), linearDefinition(kernel.Continuous(3)), kernel.Continuous(3),
			[]float64{0.6},
		},
		{"sum", kernel.NewSum(kernel.NewMatern52(plain), kernel.NewMatern32(plain)), half, plain,
			[]float64{-0.7, 0.2, 0.5, 0.3, 1, -1, 0, -0.5}},
		{"warped sum", kernel.NewWarped(sum, mixed()), warpedDefinition(5, mixed(), hebo), mixed(),
			[]float64{-0.7, 0.2, 0.5, 0.3, -0.4, 0.5, -0.8, -0.3, 0.9}},
		{"with a constant", kernel.NewSum(kernel.NewMatern32(plain), kernel.NewConstant(plain)),
			addition(4, maternDefinition(plain, 1.5), constantDefinition), plain, []float64{-0.7, 0.2, 0.5, 0.3, -1}},
		{"warped, continuous", kernel.NewWarped(kernel.NewMatern32(kernel.Continuous(3)), kernel.Continuous(3)),
			warpedDefinition(4, kernel.Continuous(3), maternDefinition(kernel.Continuous(3), 1.5)), kernel.Continuous(3),
			[]float64{-0.7, 0.2, 0.5, 0.3, 1.5, -1.5, -2, 2, 0, 0}},
		{"branched", kernel.NewBranched(kernel.NewSum(kernel.NewMatern52(grown), kernel.NewLinear(grown)), mixed(), branches()),
			branchedDefinition(branches(), addition(7, maternDefinition(grown, 2.5), linearDefinition(grown))), mixed(),
			[]float64{-0.7, 0.2, 0.5, -0.3, 0.4, 0.1, 0.3, -0.6}},
		{"curves", kernel.NewCurves(kernel.NewMatern52(kernel.Continuous(1))), curvesDefinition(1, maternDefinition(kernel.Continuous(1), 2.5)),
			[]kernel.Column{{}, {}, {Categorical: true}}, []float64{-0.7, 0.2, 0.3, -0.8, -0.5, 0.4}},
		{"curves of a snapped column and a slope", kernel.NewCurves(stepped), curvesDefinition(1, addition(2,
			maternDefinition(kernel.Continuous(1), 1.5), linearDefinition(kernel.Continuous(1)))),
			[]kernel.Column{{Snap: grid(5)}, {}, {Categorical: true}}, []float64{-0.7, 0.2, -0.4, 0.3, -0.8, -0.5, 0.4}},
		{"functions", kernel.NewFeatures(mixed(), functions{}, 0.3, 0.7), functionsDefinition(0.7), mixed(), nil},
		{"functions and branches", kernel.NewSum(
			kernel.NewBranched(kernel.NewMatern52(grown), mixed(), branches()), kernel.NewFeatures(mixed(), functions{}, 0.3, 0.7)),
			addition(7, branchedDefinition(branches(), maternDefinition(grown, 2.5)), functionsDefinition(0.7)), mixed(),
			[]float64{-0.7, 0.2, 0.5, -0.3, 0.4, 0.1, 0.3}},
	}
}

// functions are three functions of a point: a wave along the first column, the product of the first
// two, and one that depends on the category in the third.
type functions struct{}

func (functions) Len() int { return 3 }

func (functions) Values(x *mat.Dense) *mat.Dense {
	n, _ := x.Dims()
	out := mat.NewDense(n, 3, nil)
	for i := range n {
		out.SetRow(i, functionsAt(x.RawRowView(i)))
	}
	return out
}

func functionsAt(x []float64) []float64 {
	return []float64{math.Sin(3 * x[0]), x[0] * x[1], x[2] + x[1]}
}

func (functions) Slopes(x *mat.Dense) []*mat.Dense {
	n, d := x.Dims()
	out := []*mat.Dense{mat.NewDense(n, d, nil), mat.NewDense(n, d, nil), mat.NewDense(n, d, nil)}
	for i := range n {
		out[0].Set(i, 0, 3*math.Cos(3*x.At(i, 0)))
		out[1].Set(i, 0, x.At(i, 1))
		out[1].Set(i, 1, x.At(i, 0))
		out[2].Set(i, 1, 1)
	}
	return out
}

func functionsDefinition(variance float64) covariance {
	return func(_, x, y []float64) float64 {
		var sum float64
		for s, v := range functionsAt(x) {
			sum += v * functionsAt(y)[s]
		}
		return variance * sum
	}
}

// branches returns two values of mixed's category: under the first both other columns have
// scales of their own, under the second the first does.
func branches() []kernel.Branch {
	return []kernel.Branch{{Column: 2, Code: 0, Numeric: []int{0, 1}}, {Column: 2, Code: 2, Numeric: []int{0}}}
}

// mixed returns three columns: continuous, a grid of five values, categorical.
func mixed() []kernel.Column {
	return []kernel.Column{{}, {Snap: grid(5)}, {Categorical: true}}
}

// grid snaps to the nearest of n equidistant values 0, 1/(n−1), …, 1.
func grid(n int) func(float64) float64 {
	return func(v float64) float64 { return math.Round(v*float64(n-1)) / float64(n-1) }
}

func maternDefinition(columns []kernel.Column, nu float64) covariance {
	return func(theta, x, y []float64) float64 {
		var r2 float64
		for c, column := range columns {
			delta := x[c] - y[c]
			if column.Categorical && delta != 0 {
				delta = 1
			}
			r2 += delta * delta / math.Exp(2*theta[c])
		}
		a := math.Sqrt(2 * nu * r2)
		polynomial := 1 + a
		if nu == 2.5 {
			polynomial += a * a / 3
		}
		return math.Exp(theta[len(columns)]) * polynomial * math.Exp(-a)
	}
}

// curvesDefinition is NewCurves over an inner kernel of d columns.
func curvesDefinition(d int, inner covariance) covariance {
	return func(theta, x, y []float64) float64 {
		own := theta[len(theta)-4:]
		kappa := math.Exp(-math.Abs(x[d]-y[d]) / math.Exp(own[3]))
		k := inner(theta[:len(theta)-4], x[:d], y[:d]) * (math.Exp(own[0]) + math.Exp(own[1])*kappa)
		if x[d+1] == y[d+1] && x[d+1] >= 0 {
			k += math.Exp(own[2]) * kappa
		}
		return k
	}
}

func linearDefinition(columns []kernel.Column) covariance {
	return func(theta, x, y []float64) (sum float64) {
		for c, column := range columns {
			switch {
			case !column.Categorical:
				sum += (2*x[c] - 1) * (2*y[c] - 1)
			case x[c] == y[c]:
				sum++
			}
		}
		return math.Exp(theta[0]) * sum
	}
}

func constantDefinition(theta, _, _ []float64) float64 { return math.Exp(theta[0]) }

// addition is a + b, where a has the first hyperparameters.
func addition(first int, a, b covariance) covariance {
	return func(theta, x, y []float64) float64 { return a(theta[:first], x, y) + b(theta[first:], x, y) }
}

func warpedDefinition(first int, columns []kernel.Column, inner covariance) covariance {
	return func(theta, x, y []float64) float64 {
		bend := func(x []float64) []float64 {
			out, shapes := append([]float64(nil), x...), theta[first:]
			for c, column := range columns {
				if column.Categorical {
					continue
				}
				u := 1e-6 + (1-2e-6)*x[c]
				out[c] = 1 - math.Pow(1-math.Pow(u, math.Exp(shapes[0])), math.Exp(shapes[1]))
				shapes = shapes[2:]
			}
			return out
		}
		return inner(theta[:first], bend(x), bend(y))
	}
}

// branchedDefinition is inner with the points' coordinates once more for each branch that
// they are in, and ½ for those that they are not in.
func branchedDefinition(branches []kernel.Branch, inner covariance) covariance {
	grow := func(x []float64) []float64 {
		out := append([]float64(nil), x...)
		for _, b := range branches {
			for _, c := range b.Numeric {
				if x[b.Column] == b.Code {
					out = append(out, x[c])
				} else {
					out = append(out, 0.5)
				}
			}
		}
		return out
	}
	return func(theta, x, y []float64) float64 { return inner(theta, grow(x), grow(y)) }
}

// points returns n points of the subject's columns, neither snapped nor on the
// boundary, with codes 0, 1, 2 in categorical columns.
func (s *subject) points(n int, rng *rand.Rand) *mat.Dense {
	x := uniform(n, len(s.columns), rng)
	for c, column := range s.columns {
		for i := range n {
			if column.Categorical {
				x.Set(i, c, float64(rng.IntN(3)))
			}
		}
	}
	return x
}

func uniform(n, d int, rng *rand.Rand) *mat.Dense {
	x := mat.NewDense(n, d, nil)
	for i := range n {
		for c := range d {
			x.Set(i, c, 0.01+0.98*rng.Float64())
		}
	}
	return x
}

func symmetric(n int, rng *rand.Rand) *mat.SymDense {
	w := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			w.SetSym(i, j, rng.NormFloat64())
		}
	}
	return w
}
