package surrogate

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

// The covariance of HEBO's paper by its formula, Matérn-3/2 and linear of Kumaraswamy's
// warp, without a constant: at two points, for given hyperparameters.
func TestPaperKernelByFormula(t *testing.T) {
	encoding := optimizer.NewEncoding(optimizertest.Cube(t, 2, 0, 1))
	x := mat.NewDense(2, 2, []float64{0.2, 0.9, 0.7, 0.4})
	lengths, signal, linear := []float64{0.3, 0.8}, 0.6, 0.25
	shapes := [][2]float64{{1.5, 0.7}, {0.6, 2}} // a, b of each column
	for _, warp := range []bool{false, true} {
		o := Options{Paper: true, Warp: warp, Kernel: Matern32, Linear: true}
		k, config := o.Covariance(encoding)
		theta := []float64{math.Log(lengths[0]), math.Log(lengths[1]), math.Log(signal), math.Log(linear)}
		if warp {
			for _, s := range shapes {
				theta = append(theta, math.Log(s[0]), math.Log(s[1]))
			}
		}
		if k.NumParams() != len(theta) || len(config.Kernel) != len(theta) {
			t.Fatalf("warp %v: %d hyperparameters and %d priors, want %d", warp, k.NumParams(), len(config.Kernel), len(theta))
		}
		at := func(i, c int) float64 {
			u := x.At(i, c)
			if warp {
				u = 1 - math.Pow(1-math.Pow(u, shapes[c][0]), shapes[c][1])
			}
			return u
		}
		var squares, product float64
		for c := range 2 {
			squares += math.Pow((at(0, c)-at(1, c))/lengths[c], 2)
			product += (2*at(0, c) - 1) * (2*at(1, c) - 1)
		}
		r := math.Sqrt(3 * squares)
		want := signal*(1+r)*math.Exp(-r) + linear*product
		gram := mat.NewSymDense(2, nil)
		k.Prepare(theta, k.Transform(x), false).Gram(gram)
		if got := gram.At(0, 1); math.Abs(got-want) > 1e-5 {
			t.Errorf("warp %v: the covariance is %v, by the formula %v", warp, got, want)
		}
	}
}
