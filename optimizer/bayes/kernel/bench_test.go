package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// BenchmarkKernels measures kernels of nine columns, and for comparison a plain loop
// over pairs that follows the definition.
func BenchmarkKernels(b *testing.B) {
	const d = 9
	columns := kernel.Continuous(d)
	sum := kernel.NewSum(kernel.NewMatern32(columns), kernel.NewLinear(columns))
	for _, n := range []int{128, 512, 1024} {
		rng := rand.New(rand.NewPCG(6, 0))
		x, gram := uniform(n, d, rng), mat.NewSymDense(n, nil)
		definition := maternDefinition(columns, 2.5)
		theta := make([]float64, 30)
		b.Run(fmt.Sprintf("n=%d/Gram/naive", n), func(b *testing.B) {
			for b.Loop() {
				for i := range n {
					for j := i; j < n; j++ {
						gram.SetSym(i, j, definition(theta[:d+1], x.RawRowView(i), x.RawRowView(j)))
					}
				}
			}
		})
		for _, c := range []struct {
			name string
			k    *kernel.Kernel
		}{
			{"Matern52", kernel.NewMatern52(columns)}, {"Matern32", kernel.NewMatern32(columns)},
			{"Linear", kernel.NewLinear(columns)}, {"WarpedSum", kernel.NewWarped(sum, columns)},
		} {
			theta := make([]float64, c.k.NumParams())
			grad, cross := make([]float64, len(theta)), mat.NewDense(100, n, nil)
			prepare := func(x *mat.Dense, slopes bool) *kernel.Points { return c.k.Prepare(theta, x, slopes) }
			for name, f := range map[string]func(){
				"Gram":          func() { prepare(x, false).Gram(gram) },
				"Cross100":      func() { prepare(x.Slice(0, 100, 0, d).(*mat.Dense), false).Cross(cross, prepare(x, false)) },
				"ParamGradient": func() { prepare(x, true).ParamGradient(grad, gram) },
			} {
				b.Run(fmt.Sprintf("n=%d/%s/%s", n, name, c.name), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						f()
					}
				})
			}
		}
	}
}
