package linalg_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/linalg"
)

// BenchmarkCompare measures what research/linalg compares, for this package (ours)
// and for gonum. It uses the problems of the script's Python half and, like it, the
// time of the fastest run, which other programs disturb least.
func BenchmarkCompare(b *testing.B) {
	const rightSides, columns = 100, 8
	for _, n := range []int{128, 512, 1024} {
		rng := rand.New(rand.NewPCG(1, 0))
		a, right := positive(n, rng), random(n, rightSides, rng)
		x := mat.NewDense(n, columns, nil)
		x.Apply(func(int, int, float64) float64 { return rng.Float64() }, x)

		var ours linalg.Cholesky
		if err := ours.Factorize(a); err != nil {
			b.Fatal(err)
		}
		var gonums mat.Cholesky
		gonums.Factorize(a)
		lower := mat.NewTriDense(n, mat.Lower, nil)
		gonums.LTo(lower)
		padded, solved := linalg.NewColumns(n, rightSides), mat.NewDense(n, rightSides, nil)
		fill := func() {
			for i := range n {
				copy(padded.Data[i*padded.Stride:], right.RawRowView(i))
			}
		}
		trsm := func(t blas.Transpose) {
			solved.Copy(right)
			blas64.Trsm(blas.Left, t, 1, lower.RawTriangular(), solved.RawMatrix())
		}
		gram, inverse := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
		matern, theta := kernel.NewMatern52(kernel.Continuous(columns)), make([]float64, columns+1)
		for _, op := range []struct {
			name         string
			ours, gonums func()
		}{
			{"cholesky", func() { _ = ours.Factorize(a) }, func() { gonums.Factorize(a) }},
			{"solve", func() { fill(); ours.SolveL(padded) }, func() { trsm(blas.NoTrans) }},
			{"solve-transposed", func() { fill(); ours.SolveLT(padded) }, func() { trsm(blas.Trans) }},
			{"inverse", func() { ours.Inverse(inverse) }, func() { _ = gonums.InverseTo(inverse) }},
			{"kernel", func() { matern.Prepare(theta, x, false).Gram(gram) }, func() { plainMatern52(gram, x) }},
		} {
			for _, by := range []struct {
				name string
				f    func()
			}{{"ours", op.ours}, {"gonum", op.gonums}} {
				b.Run(fmt.Sprintf("%s/n=%d/%s", op.name, n, by.name), func(b *testing.B) {
					best := time.Duration(math.MaxInt64)
					for b.Loop() {
						start := time.Now()
						by.f()
						best = min(best, time.Since(start))
					}
					b.ReportMetric(float64(best), "best-ns")
				})
			}
		}
	}
}

// plainMatern52 is a straightforward kernel with unit lengthscales and variance.
func plainMatern52(dst *mat.SymDense, x *mat.Dense) {
	n, _ := x.Dims()
	for i := range n {
		for j := i; j < n; j++ {
			var r2 float64
			for c, v := range x.RawRowView(i) {
				r2 += (v - x.At(j, c)) * (v - x.At(j, c))
			}
			a := math.Sqrt(5 * r2)
			dst.SetSym(i, j, (1+a+a*a/3)*math.Exp(-a))
		}
	}
}
