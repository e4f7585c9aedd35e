package testfunc

import "math"

const (
	fromBoTorch = "BoTorch, botorch.test_functions.synthetic; Surjanovic and Bingham, Virtual Library of Simulation Experiments"
	fromEvalset = "McCourt, evalset (SigOpt, 2016)"
)

// planar returns the functions of two coordinates that BoTorch and the paper on
// unknown hyperparameters use.
func planar() []Function {
	all := []Function{
		braninFunction(), deceptiveFunction(), h1Function(),
		plane("beale", "Beale", fromBoTorch, -4.5, 4.5, 0, beale, []float64{3, 0.5}),
		{
			Name: "bukin", Title: "Bukin 6", Source: fromBoTorch,
			Lower: []float64{-15, -3}, Upper: []float64{-5, 3},
			Minimum: 0, Minimisers: [][]float64{{-10, 1}}, Value: bukin,
		},
		plane("drop-wave", "Drop-wave", fromBoTorch, -5.12, 5.12, -1, dropWave, []float64{0, 0}),
		plane("egg-holder", "Egg holder", fromBoTorch, -512, 512, -959.6406627208508, eggHolder,
			[]float64{512, 404.23180511375781}),
		plane("holder-table", "Hölder table", fromBoTorch, -10, 10, holderMinimum, holderTable,
			signs(8.05502347573656342, 9.66459001924127289)...),
		{
			Name: "six-hump-camel", Title: "Six-hump camel", Source: fromBoTorch,
			Lower: []float64{-3, -2}, Upper: []float64{3, 2}, Minimum: -1.0316284534898774,
			Minimisers: [][]float64{
				{0.089842013100318062, -0.71265640302073963}, {-0.089842013100318062, 0.71265640302073963},
			},
			Value: sixHumpCamel,
		},
		plane("three-hump-camel", "Three-hump camel", fromBoTorch, -5, 5, 0, threeHumpCamel, []float64{0, 0}),
	}
	for i := range all {
		all[i] = checked(all[i])
	}
	return all
}

// plane describes a function on a square.
func plane(name, title, source string, lower, upper, minimum float64, value func([]float64) float64, at ...[]float64) Function {
	lo, up := cube(2, lower, upper)
	return Function{
		Name: name, Title: title, Source: source, Lower: lo, Upper: up,
		Minimum: minimum, Minimisers: at, Value: value,
	}
}

// signs returns (±a, ±b).
func signs(a, b float64) [][]float64 { return [][]float64{{a, b}, {a, -b}, {-a, b}, {-a, -b}} }

// The parabola of Branin's function; t is not squared, though some papers print
// it so.
const (
	braninB = 5.1 / (4 * math.Pi * math.Pi)
	braninC = 5 / math.Pi
	braninT = 1 / (8 * math.Pi)
)

func braninFunction() Function {
	return Function{
		Name: "branin", Title: "Branin", Source: fromBoTorch + "; Branin01 of " + fromEvalset,
		Lower: []float64{-5, 0}, Upper: []float64{10, 15},
		// Where the parabola is 0 and the cosine -1.
		Minimum:    10 * braninT,
		Minimisers: [][]float64{{-math.Pi, 12.275}, {math.Pi, 2.275}, {3 * math.Pi, 2.475}},
		Value:      branin,
	}
}

func braninParabola(x []float64) float64 { return x[1] - braninB*x[0]*x[0] + braninC*x[0] - 6 }

func branin(x []float64) float64 {
	p := braninParabola(x)
	return p*p + 10*(1-braninT)*math.Cos(x[0]) + 10
}

func beale(x []float64) float64 {
	a, b := x[0], x[1]
	return square(1.5-a+a*b) + square(2.25-a+a*b*b) + square(2.625-a+a*b*b*b)
}

func bukin(x []float64) float64 {
	return 100*math.Sqrt(math.Abs(x[1]-0.01*x[0]*x[0])) + 0.01*math.Abs(x[0]+10)
}

func eggHolder(x []float64) float64 {
	a, b := x[0], x[1]+47
	return -b*math.Sin(math.Sqrt(math.Abs(b+a/2))) - a*math.Sin(math.Sqrt(math.Abs(a-b)))
}

const holderMinimum = -19.208502567886732

func holderTable(x []float64) float64 {
	return -math.Abs(math.Sin(x[0]) * math.Cos(x[1]) * math.Exp(math.Abs(1-math.Hypot(x[0], x[1])/math.Pi)))
}

func sixHumpCamel(x []float64) float64 {
	a, b := x[0]*x[0], x[1]*x[1]
	return (4-2.1*a+a*a/3)*a + x[0]*x[1] + (4*b-4)*b
}

func threeHumpCamel(x []float64) float64 {
	a := x[0] * x[0]
	return 2*a - 1.05*a*a + a*a*a/6 + x[0]*x[1] + x[1]*x[1]
}

// dropWave takes any number of coordinates.
func dropWave(x []float64) float64 {
	r := sumSquares(x)
	return -(1 + math.Cos(12*math.Sqrt(r))) / (0.5*r + 2)
}

func deceptiveFunction() Function {
	lo, up := cube(2, 0, 1)
	return Function{
		Name: "deceptive-2", Title: "Deceptive",
		Source: "Gavana, Global Optimization Benchmarks; the branches joined as in " + fromEvalset,
		Lower:  lo, Upper: up, Minimum: -1, Minimisers: [][]float64{{1.0 / 3, 2.0 / 3}}, Value: deceptive,
	}
}

// deceptive is -(Σ g_i(x_i)/n)², where g_i falls from 4/5 to 0, rises to 1 at α_i =
// i/(n+1), falls to 0 and rises to 4/5. The paper prints the last two branches without
// their constants, so that they would not meet.
func deceptive(x []float64) float64 {
	var sum float64
	for i, v := range x {
		alpha := float64(i+1) / float64(len(x)+1)
		switch {
		case v < 0.8*alpha:
			sum += 0.8 - v/alpha
		case v < alpha:
			sum += 5*v/alpha - 4
		case v < (1+4*alpha)/5:
			sum += 1 - 5*(v-alpha)/(1-alpha)
		default:
			sum += 0.8 - (1-v)/(1-alpha)
		}
	}
	return -square(sum / float64(len(x)))
}

func h1Function() Function {
	lo, up := cube(2, -100, 100)
	return Function{
		Name: "h1", Title: "H1, negated",
		Source: "Van Soest and Casius (2003); the domain as in DEAP, deap.benchmarks.h1",
		Lower:  lo, Upper: up, Minimum: -1.9999999999610940,
		Minimisers: [][]float64{{8.6997975011330448, 6.7665036550586904}}, Value: h1,
	}
}

// h1 is the negative of the function that its source maximises: the maximum, 2 up to
// the rounding of the source's constants, becomes the minimum -2. The 1 is under the
// root, as in the paper on unknown hyperparameters.
func h1(x []float64) float64 {
	num := square(math.Sin(x[0]-x[1]/8)) + square(math.Sin(x[1]+x[0]/8))
	return -num / math.Sqrt(square(x[0]-8.6998)+square(x[1]-6.7665)+1)
}

func square(v float64) float64 { return v * v }

func sumSquares(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	return sum
}
