package testfunc

import (
	"fmt"
	"math"
)

func hartmann() []Function {
	// P is in units of 10⁻⁴.
	a3 := [4][]float64{{3, 10, 30}, {0.1, 10, 35}, {3, 10, 30}, {0.1, 10, 35}}
	p3 := [4][]float64{{3689, 1170, 2673}, {4699, 4387, 7470}, {1091, 8732, 5547}, {381, 5743, 8828}}
	a6 := [4][]float64{
		{10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14},
	}
	p6 := [4][]float64{
		{1312, 1696, 5569, 124, 8283, 5886}, {2329, 4135, 8307, 3736, 1004, 9991},
		{2348, 1451, 3522, 2883, 3047, 6650}, {4047, 8828, 8732, 5743, 1091, 381},
	}
	return []Function{
		hartmannFunction(a3, p3, -3.8627797873326625,
			[]float64{0.11458887665506897, 0.55564889461693005, 0.85254698468667744}),
		hartmannFunction(a6, p6, -3.3223680114155148,
			[]float64{
				0.20168951100670543, 0.15001069182345797, 0.47687397422189699,
				0.27533243049405607, 0.31165161660011325, 0.65730053406562031,
			}),
	}
}

func hartmannFunction(a, p [4][]float64, minimum float64, at []float64) Function {
	dim := len(at)
	lo, up := cube(dim, 0, 1)
	return checked(Function{
		Name: fmt.Sprintf("hartmann%d", dim), Title: fmt.Sprintf("Hartmann, %d-D", dim), Source: fromBoTorch,
		Lower: lo, Upper: up, Minimum: minimum, Minimisers: [][]float64{at},
		Value: func(x []float64) float64 {
			var sum float64
			for i, alpha := range [4]float64{1, 1.2, 3, 3.2} {
				var exponent float64
				for j, v := range x {
					exponent += a[i][j] * square(v-p[i][j]*1e-4)
				}
				sum -= alpha * math.Exp(-exponent)
			}
			return sum
		},
	})
}
