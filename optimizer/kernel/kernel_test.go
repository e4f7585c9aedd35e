package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/kernel"
)

// grid snaps to the nearest of n equidistant values 0, 1/(n−1), …, 1.
func grid(n int) func(float64) float64 {
	return func(v float64) float64 { return math.Round(v*float64(n-1)) / float64(n-1) }
}

// mixed is three columns: continuous, a grid of five values, categorical.
func mixed() []kernel.Column {
	return []kernel.Column{{}, {Snap: grid(5)}, {Categorical: true}}
}

func uniform(n, d int, rng *rand.Rand) *mat.Dense {
	x := mat.NewDense(n, d, nil)
	for i := range n {
		for c := range d {
			x.Set(i, c, rng.Float64())
		}
	}
	return x
}

// mixedPoints are points of the columns of mixed, with codes 0, 1, 2.
func mixedPoints(n int, rng *rand.Rand) *mat.Dense {
	x := uniform(n, 3, rng)
	for i := range n {
		x.Set(i, 2, float64(rng.IntN(3)))
	}
	return x
}

// naive is the Matérn-5/2 kernel as its definition reads.
func naive(columns []kernel.Column, theta, x, y []float64) float64 {
	var r2 float64
	for c, column := range columns {
		a, b := x[c], y[c]
		if column.Snap != nil {
			a, b = column.Snap(a), column.Snap(b)
		}
		delta := a - b
		if column.Categorical && a != b {
			delta = 1
		}
		r2 += delta * delta / math.Exp(2*theta[c])
	}
	r := math.Sqrt(r2)
	return math.Exp(theta[len(columns)]) * (1 + math.Sqrt(5)*r + 5*r2/3) * math.Exp(-math.Sqrt(5)*r)
}

func TestMatern52AgainstItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n, m := rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "m")
		theta := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		k := kernel.NewMatern52(mixed())
		x, y := mixedPoints(n, rng), mixedPoints(m, rng)
		tx, ty := k.Transform(x), k.Transform(y)
		gram, cross, diag := mat.NewSymDense(n, nil), mat.NewDense(n, m, nil), make([]float64, n)
		k.Gram(gram, theta, tx)
		k.Cross(cross, theta, tx, ty)
		k.Diag(diag, theta, tx)
		check := func(got float64, a, b []float64) {
			if want := naive(mixed(), theta, a, b); math.Abs(got-want) > 1e-13*want {
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
}

// Hamming distance with lengthscale ℓ equals a one-hot encoding with √2·ℓ.
func TestHammingEqualsOneHot(t *testing.T) {
	hamming := kernel.NewMatern52([]kernel.Column{{Categorical: true}})
	oneHot := kernel.NewMatern52(kernel.Continuous(3))
	const logL = 0.4
	wide := logL + math.Log(2)/2
	a, b := mat.NewSymDense(3, nil), mat.NewSymDense(3, nil)
	hamming.Gram(a, []float64{logL, 0.2}, mat.NewDense(3, 1, []float64{0, 1, 7}))
	oneHot.Gram(b, []float64{wide, wide, wide, 0.2}, mat.NewDense(3, 3, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}))
	if !mat.EqualApprox(a, b, 1e-14) {
		t.Errorf("Hamming %v, one-hot %v", mat.Formatted(a), mat.Formatted(b))
	}
}

func TestTransformSnapsOnceAndLeavesItsArgument(t *testing.T) {
	k := kernel.NewMatern52(mixed())
	x := mat.NewDense(2, 3, []float64{0.3, 0.3, 2, 0.7, 0.95, 0})
	before := mat.DenseCopyOf(x)
	once := k.Transform(x)
	if want := mat.NewDense(2, 3, []float64{0.3, 0.25, 2, 0.7, 1, 0}); !mat.Equal(once, want) {
		t.Errorf("Transform = %v, want %v", mat.Formatted(once), mat.Formatted(want))
	}
	if !mat.Equal(k.Transform(once), once) || !mat.Equal(x, before) {
		t.Error("Transform is not idempotent, or changed its argument")
	}
}

func TestParamGradientAgainstFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	const n, h = 50, 1e-5
	k := kernel.NewMatern52(mixed())
	x := k.Transform(mixedPoints(n, rng))
	theta := []float64{-0.7, 0.2, 0.5, 0.3}
	w := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			w.SetSym(i, j, rng.NormFloat64())
		}
	}
	weighted := func(theta []float64) (sum float64) {
		gram := mat.NewSymDense(n, nil)
		k.Gram(gram, theta, x)
		for i := range n {
			for j := range n {
				sum += w.At(i, j) * gram.At(i, j)
			}
		}
		return sum
	}
	got := make([]float64, 4)
	k.ParamGradient(got, theta, x, w)
	for p := range theta {
		up, down := append([]float64(nil), theta...), append([]float64(nil), theta...)
		up[p] += h
		down[p] -= h
		want := (weighted(up) - weighted(down)) / (2 * h)
		if math.Abs(got[p]-want) > 1e-7*(1+math.Abs(want)) {
			t.Errorf("parameter %d: gradient %v, finite difference %v", p, got[p], want)
		}
	}
}

func TestInputGradientAgainstFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	const n, h = 20, 1e-6
	columns := []kernel.Column{{}, {}, {Snap: grid(4)}, {Categorical: true}}
	k := kernel.NewMatern52(columns)
	theta := []float64{-0.7, 0.2, 0.5, 0.3, 0.1}
	x := uniform(n, 4, rng)
	x = k.Transform(x)
	point := append([]float64(nil), x.RawRowView(7)...) // at a data point too
	point[0] += 0.2
	got := mat.NewDense(n, 4, nil)
	k.InputGradient(got, theta, x, point)
	for i := range n {
		for c := range 4 {
			var want float64
			if c < 2 {
				up, down := append([]float64(nil), point...), append([]float64(nil), point...)
				up[c] += h
				down[c] -= h
				want = (naive(columns, theta, up, x.RawRowView(i)) - naive(columns, theta, down, x.RawRowView(i))) / (2 * h)
			}
			if math.Abs(got.At(i, c)-want) > 1e-8 {
				t.Errorf("∂k/∂x_%d at point %d: %v, finite difference %v", c, i, got.At(i, c), want)
			}
		}
	}
	diag := []float64{1, 1, 1, 1}
	k.DiagGradient(diag, theta, point)
	if floats.Norm(diag, 1) != 0 {
		t.Errorf("the diagonal's gradient is %v, want 0", diag)
	}
}

func TestSameBitsOnAnyNumberOfCores(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	const n = 150
	k := kernel.NewMatern52(mixed())
	x := k.Transform(mixedPoints(n, rng))
	theta := []float64{-1, 0, 0.5, 0.3}
	run := func(cores int) (*mat.SymDense, []float64) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		gram, grad := mat.NewSymDense(n, nil), make([]float64, 4)
		k.Gram(gram, theta, x)
		k.ParamGradient(grad, theta, x, gram)
		return gram, grad
	}
	gram1, grad1 := run(1)
	gram4, grad4 := run(4)
	if !mat.Equal(gram1, gram4) || !floats.Equal(grad1, grad4) {
		t.Errorf("gradient %v on one core, %v on four", grad1, grad4)
	}
}

func BenchmarkGram(b *testing.B) {
	for _, n := range []int{128, 1000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) { benchmark(b, n, false) })
	}
}

func BenchmarkParamGradient(b *testing.B) {
	for _, n := range []int{128, 1000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) { benchmark(b, n, true) })
	}
}

func benchmark(b *testing.B, n int, gradient bool) {
	const d = 9
	rng := rand.New(rand.NewPCG(6, 0))
	k := kernel.NewMatern52(kernel.Continuous(d))
	x, gram := uniform(n, d, rng), mat.NewSymDense(n, nil)
	theta, grad := make([]float64, d+1), make([]float64, d+1)
	k.Gram(gram, theta, x)
	b.ReportAllocs()
	for b.Loop() {
		if gradient {
			k.ParamGradient(grad, theta, x, gram)
		} else {
			k.Gram(gram, theta, x)
		}
	}
}
