package kernel_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// scatter adds normal noise to the hyperparameters.
func scatter(theta []float64, rng *rand.Rand) []float64 {
	out := slices.Clone(theta)
	for p := range out {
		out[p] += 0.5 * rng.NormFloat64()
	}
	return out
}

func TestKernelsAgainstTheirDefinitions(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				n, m := rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "m")
				theta := scatter(s.theta, rng)
				x, y := s.kernel.Transform(s.points(n, rng)), s.kernel.Transform(s.points(m, rng))
				y.SetRow(rng.IntN(m), x.RawRowView(0))
				gram, cross, diag := mat.NewSymDense(n, nil), mat.NewDense(n, m, nil), make([]float64, n)
				points := s.kernel.Prepare(theta, x, false)
				points.Gram(gram)
				points.Cross(cross, s.kernel.Prepare(theta, y, false))
				points.Diag(diag)
				check := func(got float64, a, b []float64) {
					want, largest := s.definition(theta, a, b), math.Sqrt(s.definition(theta, a, a)*s.definition(theta, b, b))
					if !(math.Abs(got-want) <= 1e-12*(1+largest)) { // the terms may cancel
						t.Errorf("k(%v, %v) = %v, want %v", a, b, got, want)
					}
				}
				for i := range n {
					check(diag[i], x.RawRowView(i), x.RawRowView(i))
					for j := range n {
						check(gram.At(i, j), x.RawRowView(i), x.RawRowView(j))
					}
					for j := range m {
						check(cross.At(i, j), x.RawRowView(i), y.RawRowView(j))
					}
				}
			})
		})
	}
}

// Σ_ij c_i c_j k(x_i, x_j) is a variance for any points and any c.
func TestPositiveSemiDefinite(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				n := rapid.IntRange(1, 30).Draw(t, "n")
				x := s.kernel.Transform(s.points(n, rng))
				for range n / 4 { // some repeatedly
					x.SetRow(rng.IntN(n), x.RawRowView(rng.IntN(n)))
				}
				gram := mat.NewSymDense(n, nil)
				s.kernel.Prepare(scatter(s.theta, rng), x, false).Gram(gram)
				var eigen mat.EigenSym
				if !eigen.Factorize(gram, false) {
					t.Fatal("no eigenvalues")
				}
				values := eigen.Values(nil)
				if lowest, highest := values[0], values[n-1]; !(lowest >= -1e-13*float64(n)*highest) {
					t.Errorf("eigenvalues from %v to %v", lowest, highest)
				}
			})
		})
	}
}

// Hamming distance with lengthscale ℓ equals a one-hot encoding with √2·ℓ.
func TestHammingEqualsOneHot(t *testing.T) {
	codes := mat.NewDense(3, 1, []float64{0, 1, 7})
	oneHot := mat.NewDense(3, 3, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1})
	categorical := []kernel.Column{{Categorical: true}}
	const logL = 0.4
	wide := logL + math.Log(2)/2
	for _, c := range []struct{ hamming, oneHot *kernel.Kernel }{
		{kernel.NewMatern52(categorical), kernel.NewMatern52(kernel.Continuous(3))},
		{kernel.NewMatern32(categorical), kernel.NewMatern32(kernel.Continuous(3))},
	} {
		a, b := mat.NewSymDense(3, nil), mat.NewSymDense(3, nil)
		c.hamming.Prepare([]float64{logL, 0.2}, codes, false).Gram(a)
		c.oneHot.Prepare([]float64{wide, wide, wide, 0.2}, oneHot, false).Gram(b)
		if !mat.EqualApprox(a, b, 1e-14) {
			t.Errorf("Hamming %v, one-hot %v", mat.Formatted(a), mat.Formatted(b))
		}
	}
}

func TestTransformSnapsOnceAndLeavesItsArgument(t *testing.T) {
	plain := kernel.WithoutSnap(mixed())
	for _, k := range []*kernel.Kernel{
		kernel.NewMatern52(mixed()), kernel.NewSum(kernel.NewLinear(mixed()), kernel.NewMatern32(mixed())),
		kernel.NewWarped(kernel.NewMatern32(plain), mixed()),
		kernel.NewBranched(kernel.NewMatern32(kernel.BranchedColumns(mixed(), branches())), mixed(), branches()),
	} {
		x := mat.NewDense(2, 3, []float64{0.3, 0.3, 2, 0.7, 0.95, 0})
		before := mat.DenseCopyOf(x)
		once := k.Transform(x)
		if want := mat.NewDense(2, 3, []float64{0.3, 0.25, 2, 0.7, 1, 0}); !mat.Equal(once, want) {
			t.Errorf("%T: Transform = %v, want %v", k, mat.Formatted(once), mat.Formatted(want))
		}
		if !mat.Equal(k.Transform(once), once) || !mat.Equal(x, before) {
			t.Errorf("%T: Transform is not idempotent, or changed its argument", k)
		}
	}
}

// With a = b = 1, only the margin that package warp keeps from the bounds remains.
func TestUnitShapesDoNotWarp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	plain := kernel.WithoutSnap(mixed())
	inner := kernel.NewSum(kernel.NewMatern32(plain), kernel.NewLinear(plain))
	k := kernel.NewWarped(inner, mixed())
	x := k.Transform(mat.NewDense(4, 3, []float64{0, 1, 2, 1, 0, 0, 0.3, 0.25, 1, rng.Float64(), 0.5, 0}))
	theta := []float64{-0.7, 0.2, 0.5, 0.3, -0.4}
	a, b := mat.NewSymDense(4, nil), mat.NewSymDense(4, nil)
	inner.Prepare(theta, x, false).Gram(a)
	k.Prepare(append(theta, 0, 0, 0, 0), x, false).Gram(b)
	if !mat.EqualApprox(a, b, 1e-5) {
		t.Errorf("plain %v, warped %v", mat.Formatted(a), mat.Formatted(b))
	}
}

func TestNumericColumnsAreWarpedInTheirOrder(t *testing.T) {
	columns := []kernel.Column{{Categorical: true}, {}, {Categorical: true}, {Snap: grid(3)}}
	inner := kernel.NewMatern32(kernel.WithoutSnap(columns))
	k := kernel.NewWarped(inner, columns)
	if got := k.NumericColumns(); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("numeric columns %v, want 1 and 3", got)
	}
	if got := k.NumParams(); got != inner.NumParams()+4 {
		t.Errorf("%d hyperparameters over an inner kernel of %d and two numeric columns", got, inner.NumParams())
	}
}

func TestSameBitsOnAnyNumberOfCores(t *testing.T) {
	for _, s := range subjects() {
		rng := rand.New(rand.NewPCG(5, 0))
		const n = 150
		x := s.kernel.Transform(s.points(n, rng))
		run := func(cores int) (*mat.SymDense, []float64, *mat.Dense) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			gram, grad, pairs := mat.NewSymDense(n, nil), make([]float64, len(s.theta)), mat.NewDense(n, 3, nil)
			points := s.kernel.Prepare(s.theta, x, true)
			points.Gram(gram)
			points.ParamGradient(grad, gram)
			points.WeightedGradient(pairs, points, mat.DenseCopyOf(gram))
			return gram, grad, pairs
		}
		gram1, grad1, pairs1 := run(1)
		gram4, grad4, pairs4 := run(4)
		if !mat.Equal(gram1, gram4) || !floats.Equal(grad1, grad4) || !mat.Equal(pairs1, pairs4) {
			t.Errorf("%s: gradient %v on one core, %v on four", s.name, grad1, grad4)
		}
	}
}

// A configuration alone has no deviation of a trial, not even beside itself.
func TestConfigurationsAloneDoNotDeviate(t *testing.T) {
	k := kernel.NewCurves(kernel.NewMatern52(kernel.Continuous(1)))
	theta := []float64{-0.7, 0.2, 0.3, -0.8, -0.5, 0.4}
	of := curvesDefinition(1, maternDefinition(kernel.Continuous(1), 2.5))
	x := mat.NewDense(4, 3, []float64{0.2, 1, -1, 0.2, 1, -1, 0.2, 1, 0, 0.6, 0.5, 0})
	points := k.Prepare(theta, k.Transform(x), false)
	got, diagonal := mat.NewDense(4, 4, nil), make([]float64, 4)
	points.Cross(got, points)
	points.Diag(diagonal)
	for i := range 4 {
		for j := range 4 {
			if want := of(theta, x.RawRowView(i), x.RawRowView(j)); math.Abs(got.At(i, j)-want) > 1e-12 {
				t.Errorf("k(%d, %d) is %v, want %v", i, j, got.At(i, j), want)
			}
		}
		if math.Abs(diagonal[i]-got.At(i, i)) > 1e-12 {
			t.Errorf("the variance of point %d is %v, want %v", i, diagonal[i], got.At(i, i))
		}
	}
	if !(diagonal[2] > diagonal[0]) {
		t.Errorf("a trial's variance is %v, that of its configuration %v", diagonal[2], diagonal[0])
	}
}
