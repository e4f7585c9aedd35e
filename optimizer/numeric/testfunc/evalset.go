package testfunc

import "math"

// evalset returns the functions that the paper on latent Gaussian processes takes from
// McCourt's evalset, if BoTorch lacks them or has them on another domain.
func evalset() []Function {
	all := []Function{
		plane("branin02", "Branin 2", fromEvalset, -5, 15, 5.5589144038938198, branin02,
			[]float64{-3.1969884247443832, 12.526257885290117}),
		plane("cross-in-tray", "Cross in tray", fromEvalset, -10, 10, -2.0626118708227368, crossInTray,
			signs(1.3494066171539108, 1.3494066171539108)...),
		plane("griewank-2-lgp", "Griewank, 2-D, off centre", fromEvalset, -50, 20, 0, griewank, []float64{0, 0}),
		plane("levy13", "Levy 13", fromEvalset, -10, 10, 0, levy13, []float64{1, 1}),
		plane("shubert01", "Shubert 1", fromEvalset, -10, 10, -186.73090883102384, shubert01, shubertMinimisers()...),
		offCentre("ackley-2-lgp", "Ackley, 2-D, off centre", 2, -10, 30, 0, ackley, 0),
		offCentre("ackley-6-lgp", "Ackley, 6-D, off centre", 6, -10, 30, 0, ackley, 0),
		// One of the 2¹⁰ minimisers: every coordinate's sign is free.
		offCentre("cosine-mixture-10", "Cosine mixture, 10-D", 10, -1, 1, -0.63012202176250318, cosineMixture,
			0.18487282318291573),
		offCentre("deflected-corrugated-spring-10", "Deflected corrugated spring, 10-D", 10, 0, 7.5, -1, corrugatedSpring, 5),
		offCentre("drop-wave-10-lgp", "Drop-wave, 10-D, off centre", 10, -2, 5.12, -1, dropWave, 0),
		offCentre("exponential-8", "Exponential, 8-D", 8, -0.7, 0.2, -1, exponential, 0),
		offCentre("powell-triple-log-12", "Powell, three times, log, 12-D", 12, -4, 1, 0, powellTripleLog, 0),
		// Every cosine of the sum is -1 at 0: 8·7·Σ2⁻ᵏ over k = 0..20.
		offCentre("weierstrass-8", "Weierstrass, 8-D", 8, -0.5, 0.2, 56*weierstrassSum, weierstrass, 0),
	}
	for i := range all {
		all[i] = checked(all[i])
	}
	return all
}

// offCentre describes a function whose minimiser has equal coordinates, in general
// not in the middle of its domain.
func offCentre(
	name, title string, dim int, lower, upper, minimum float64, value func([]float64) float64, coordinate float64,
) Function {
	lo, up := cube(dim, lower, upper)
	return Function{
		Name: name, Title: title, Source: fromEvalset, Lower: lo, Upper: up,
		Minimum: minimum, Minimisers: [][]float64{repeat(dim, coordinate)}, Value: value,
	}
}

func branin02(x []float64) float64 {
	p := braninParabola(x)
	return p*p + 10*(1-braninT)*math.Cos(x[0])*math.Cos(x[1]) + math.Log(sumSquares(x)+1) + 10
}

func crossInTray(x []float64) float64 {
	inner := math.Abs(math.Sin(x[0])*math.Sin(x[1])*math.Exp(math.Abs(100-math.Hypot(x[0], x[1])/math.Pi))) + 1
	return -0.0001 * math.Pow(inner, 0.1)
}

func levy13(x []float64) float64 {
	a, b := x[0], x[1]
	return square(math.Sin(3*math.Pi*a)) + square(a-1)*(1+square(math.Sin(3*math.Pi*b))) +
		square(b-1)*(1+square(math.Sin(2*math.Pi*b)))
}

func shubert01(x []float64) float64 { return shubertSum(x[0]) * shubertSum(x[1]) }

func shubertSum(v float64) float64 {
	var sum float64
	for i := 1.0; i <= 5; i++ {
		sum += i * math.Cos((i+1)*v+i)
	}
	return sum
}

// shubertMinimisers pairs the greatest value of the sum with its least one, either
// way round; the sum has the period 2π.
func shubertMinimisers() [][]float64 {
	var at [][]float64
	for i := range 3 {
		greatest := -7.0835064076515596 + 2*math.Pi*float64(i)
		for j := range 3 {
			least := -7.7083137354993474 + 2*math.Pi*float64(j)
			at = append(at, []float64{greatest, least}, []float64{least, greatest})
		}
	}
	return at
}

func cosineMixture(x []float64) float64 {
	sum := sumSquares(x)
	for _, v := range x {
		sum += 0.1 * math.Cos(5*math.Pi*v)
	}
	return sum
}

// corrugatedSpring has α = K = 5.
func corrugatedSpring(x []float64) float64 {
	var r float64
	for _, v := range x {
		r += square(v - 5)
	}
	return 0.1*r - math.Cos(5*math.Sqrt(r))
}

func exponential(x []float64) float64 { return -math.Exp(-sumSquares(x) / 2) }

func powellTripleLog(x []float64) float64 {
	sum := 1.0
	for i := 0; i < len(x); i += 4 {
		a, b, c, d := x[i], x[i+1], x[i+2], x[i+3]
		sum += square(a+10*b) + 5*square(c-d) + square(square(b-2*c)) + 10*square(square(a-d))
	}
	return math.Log(sum)
}

const (
	weierstrassTerms = 21
	weierstrassSum   = 2 - 1.0/(1<<(weierstrassTerms-1)) // Σ 2⁻ᵏ over the terms
)

// weierstrass has a = 1/2, b = 3 and k ≤ 20. The term that makes the minimum 0 in other
// definitions, n·Σ aᵏcos(πbᵏ), is inside the sum over the coordinates, as in evalset.
func weierstrass(x []float64) float64 {
	n := float64(len(x))
	var sum float64
	for _, v := range x {
		a, b := 1.0, 1.0
		for range weierstrassTerms {
			sum += a * math.Cos(2*math.Pi*b*(v+0.5))
			a, b = a/2, b*3
		}
		sum += n * weierstrassSum // every cos(π·3ᵏ) is -1
	}
	return sum
}
