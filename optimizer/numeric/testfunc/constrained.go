package testfunc

import "math"

// Where the functions with unknown constraints are from.
const (
	fromGardner = "Gardner et al., Bayesian Optimization with Inequality Constraints (2014), Section 5.1"
	fromGramacy = "Gramacy et al., Modeling an Augmented Lagrangian for Blackbox Constrained Optimization (2016), Section 1"
	fromGelbart = "Gelbart, Snoek and Adams, Bayesian Optimization with Unknown Constraints (2014), Section 5.1"
)

// inside keeps a minimiser on the border of the feasible region feasible despite
// rounding.
const inside = 1e-11

// constrained returns functions that can only be evaluated on a part of their domain,
// which the optimiser is not told.
func constrained() []Function {
	all := []Function{
		square6("gardner-1", "Gardner's first constrained function", -2, []float64{3 * math.Pi / 2, 0},
			func(x []float64) float64 { return math.Cos(2*x[0])*math.Cos(x[1]) + math.Sin(x[0]) },
			func(x []float64) bool { return math.Cos(x[0]+x[1]) <= 0.5 }), // cos x cos y − sin x sin y
		square6("gardner-2", "Gardner's second constrained function", 0.25323589750337525874,
			[]float64{3 * math.Pi / 2, 1.2532358975033752587 + inside},
			func(x []float64) float64 { return math.Sin(x[0]) + x[1] },
			func(x []float64) bool { return math.Sin(x[0])*math.Sin(x[1]) <= -0.95 }),
		{
			Name: "gramacy", Title: "Gramacy's constrained line", Source: fromGramacy,
			Lower: []float64{0, 0}, Upper: []float64{1, 1},
			// A root of the first constraint where its gradient is parallel to (1, 1), by mpmath.
			Minimum:    0.59978805201006756114,
			Minimisers: [][]float64{{0.19512268347207176293 + inside, 0.40466536853799579821 + inside}},
			Value:      func(x []float64) float64 { return x[0] + x[1] },
			Feasible: func(x []float64) bool {
				wave := math.Sin(2*math.Pi*(x[0]*x[0]-2*x[1])) / 2
				return 1.5-x[0]-2*x[1]-wave <= 0 && x[0]*x[0]+x[1]*x[1] <= 1.5
			},
		},
		braninDisk(),
		crashing("hartmann6", 3.3),
		crashing("levy-5", 5.6),
	}
	for i := range all {
		all[i] = checked(all[i])
	}
	return all
}

func square6(name, title string, minimum float64, at []float64, value func([]float64) float64, feasible func([]float64) bool) Function {
	f := plane(name, title, fromGardner, 0, 6, minimum, value, at)
	f.Feasible = feasible
	return f
}

// braninDisk has one of Branin's three minimisers inside of a disk.
func braninDisk() Function {
	f := braninFunction()
	f.Name, f.Title, f.Source = "branin-disk", "Branin on a disk", fromGelbart
	f.Minimisers = f.Minimisers[1:2]
	f.Feasible = func(x []float64) bool { return square(x[0]-2.5)+square(x[1]-7.5) <= 50 }
	return f
}

// crashing is a function whose evaluation fails where the sum of the coordinates is
// above most: on a third of the domain, without the minimiser.
func crashing(name string, most float64) Function {
	var f Function
	for _, g := range append(hartmann(), scalable()...) {
		if g.Name == name {
			f = g
		}
	}
	f.Name, f.Title = name+"-crash", f.Title+", crashing on a third"
	f.Feasible = func(x []float64) bool {
		var sum float64
		for _, v := range x {
			sum += v
		}
		return sum <= most
	}
	return f
}
