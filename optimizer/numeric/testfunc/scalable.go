package testfunc

import (
	"fmt"
	"math"
)

// scalable returns the functions of any dimension, on the domains that BoTorch
// gives them, in the dimensions that the papers use.
func scalable() []Function {
	var all []Function
	for _, dim := range []int{1, 2, 5, 6, 10} {
		all = append(all, atOrigin("ackley", "Ackley", dim, 32.768, ackley))
	}
	for _, dim := range []int{1, 2, 5, 10} {
		all = append(all,
			dixonPriceFunction(dim),
			atOrigin("griewank", "Griewank", dim, 600, griewank),
			scaled("levy", "Levy", dim, -10, 10, 0, levy, repeat(dim, 1)),
			atOrigin("rastrigin", "Rastrigin", dim, 5.12, rastrigin),
		)
	}
	for _, dim := range []int{2, 5, 10} {
		all = append(all,
			michalewiczFunction(dim),
			scaled("rosenbrock", "Rosenbrock", dim, -5, 10, 0, rosenbrock, repeat(dim, 1)),
			// The left of the two minima of (x⁴ - 16x² + 5x)/2, which add up.
			scaled("styblinski-tang", "Styblinski–Tang", dim, -5, 5, -39.166165703771415*float64(dim), styblinskiTang,
				repeat(dim, -2.9035340277711771)),
		)
	}
	return all
}

func scaled(
	name, title string, dim int, lower, upper, minimum float64, value func([]float64) float64, at ...[]float64,
) Function {
	lo, up := cube(dim, lower, upper)
	return checked(Function{
		Name: fmt.Sprintf("%s-%d", name, dim), Title: fmt.Sprintf("%s, %d-D", title, dim), Source: fromBoTorch,
		Lower: lo, Upper: up, Minimum: minimum, Minimisers: at, Value: value,
	})
}

// atOrigin describes a function on [-bound, bound]ⁿ that is 0 at 0.
func atOrigin(name, title string, dim int, bound float64, value func([]float64) float64) Function {
	return scaled(name, title, dim, -bound, bound, 0, value, make([]float64, dim))
}

func ackley(x []float64) float64 {
	n := float64(len(x))
	var cosines float64
	for _, v := range x {
		cosines += math.Cos(2 * math.Pi * v)
	}
	return -20*math.Exp(-0.2*math.Sqrt(sumSquares(x)/n)) - math.Exp(cosines/n) + 20 + math.E
}

// dixonPriceFunction: 2x_i² = x_{i-1} from x_1 = 1 gives x_i = 2^(2^(1-i)-1); only
// the last coordinate's sign is free.
func dixonPriceFunction(dim int) Function {
	at := make([]float64, dim)
	for i := range at {
		at[i] = math.Exp2(math.Exp2(float64(-i)) - 1)
	}
	minimisers := [][]float64{at}
	if dim > 1 {
		mirrored := append([]float64(nil), at...)
		mirrored[dim-1] = -mirrored[dim-1]
		minimisers = append(minimisers, mirrored)
	}
	return scaled("dixon-price", "Dixon–Price", dim, -10, 10, 0, dixonPrice, minimisers...)
}

func dixonPrice(x []float64) float64 {
	sum := square(x[0] - 1)
	for i := 1; i < len(x); i++ {
		sum += float64(i+1) * square(2*x[i]*x[i]-x[i-1])
	}
	return sum
}

func griewank(x []float64) float64 {
	product := 1.0
	for i, v := range x {
		product *= math.Cos(v / math.Sqrt(float64(i+1)))
	}
	return sumSquares(x)/4000 - product + 1
}

func levy(x []float64) float64 {
	w := func(i int) float64 { return 1 + (x[i]-1)/4 }
	last := len(x) - 1
	sum := square(math.Sin(math.Pi * w(0)))
	for i := range last {
		sum += square(w(i)-1) * (1 + 10*square(math.Sin(math.Pi*w(i)+1)))
	}
	return sum + square(w(last)-1)*(1+square(math.Sin(2*math.Pi*w(last))))
}

func rastrigin(x []float64) float64 {
	sum := 10 * float64(len(x))
	for _, v := range x {
		sum += v*v - 10*math.Cos(2*math.Pi*v)
	}
	return sum
}

func rosenbrock(x []float64) float64 {
	var sum float64
	for i := range len(x) - 1 {
		sum += 100*square(x[i+1]-x[i]*x[i]) + square(x[i]-1)
	}
	return sum
}

func styblinskiTang(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v*v*v*v - 16*v*v + 5*v
	}
	return sum / 2
}

// michalewiczFunction: the function is a sum over the coordinates, so the minimiser
// is known coordinate by coordinate: the roots of the derivatives, by mpmath.
func michalewiczFunction(dim int) Function {
	at := []float64{
		2.2029055201726093, math.Pi / 2, 1.2849915705529244, 1.9230584698663628, 1.7204697725658413,
		math.Pi / 2, 1.4544139713623790, 1.7560865209450264, 1.6557174168210291, math.Pi / 2,
	}[:dim]
	minimum := map[int]float64{2: -1.8013034100985525, 5: -4.6876581790881463, 10: -9.6601517156413414}[dim]
	return scaled("michalewicz", "Michalewicz", dim, 0, math.Pi, minimum, michalewicz, at)
}

// michalewicz has the steepness m = 10: sines to the power of 20.
func michalewicz(x []float64) float64 {
	var sum float64
	for i, v := range x {
		sum -= math.Sin(v) * math.Pow(math.Sin(float64(i+1)*v*v/math.Pi), 20)
	}
	return sum
}
