package testfunc

import (
	"math"
	"slices"
	"strings"
)

// Limited is a deterministic test function to be minimised within limits that are functions
// too. Its slices belong to the caller who got it; Value is safe for concurrent use.
type Limited struct {
	// Name identifies the function, such as "pressure-vessel".
	Name string
	// Lower and Upper bound the domain, one number a coordinate, both inclusive.
	Lower, Upper []float64
	// Step holds the distance between the values of each coordinate; 0 for a continuum.
	Step []float64
	// Minimum is the smallest value within all limits, and Minimiser a place of it.
	Minimum   float64
	Minimiser []float64
	// Source cites the definition.
	Source string
	// Value returns the objective at x and by how much each limit is exceeded there: 0 or less
	// within the limit. It does not change x.
	Value func(x []float64) (value float64, excess []float64)
}

// LimitedFunctions returns every function with limits, sorted by name.
func LimitedFunctions() []Limited {
	all := []Limited{
		gardner("gardner-1", func(x []float64) float64 { return math.Cos(x[0])*math.Cos(x[1]) - math.Sin(x[0])*math.Sin(x[1]) - 0.5 }),
		gardner("gardner-2", func(x []float64) float64 { return math.Sin(x[0])*math.Sin(x[1]) + 0.95 }),
		pressureVessel(),
	}
	slices.SortFunc(all, func(a, b Limited) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// gardner is a function of Gardner et al. whose constraint is known by its value, rather than
// by whether it is met.
func gardner(name string, excess func(x []float64) float64) Limited {
	all := constrained()
	f := all[slices.IndexFunc(all, func(f Function) bool { return f.Name == name })]
	return Limited{
		Name: name, Lower: f.Lower, Upper: f.Upper, Step: make([]float64, len(f.Lower)),
		Minimum: f.Minimum, Minimiser: f.Minimisers[0], Source: f.Source,
		Value: func(x []float64) (float64, []float64) { return f.Value(x), []float64{excess(x)} },
	}
}

// pressureVessel is the cost of a cylinder with two hemispherical heads: the thickness of the
// shell and of the heads, in sixteenths of an inch, the radius and the length.
func pressureVessel() Limited {
	const sixteenth = 0.0625
	return Limited{
		Name: "pressure-vessel", Lower: []float64{sixteenth, sixteenth, 10, 10}, Upper: []float64{99 * sixteenth, 99 * sixteenth, 200, 200},
		Step:    []float64{sixteenth, sixteenth, 0, 0},
		Minimum: 6059.714335048436, Minimiser: []float64{0.8125, 0.4375, 0.8125 / 0.0193, 176.63659584243732},
		Source: "Kannan and Kramer (1994), An Augmented Lagrange Multiplier Based Method for Mixed Integer Discrete " +
			"Continuous Optimization; the minimum is proved in Yang, Huyck, Karamanoglu and Khan (2013), True Global Optimality of the Pressure " +
			"Vessel Design Problem",
		Value: func(x []float64) (float64, []float64) {
			shell, head, r, l := x[0], x[1], x[2], x[3]
			cost := 0.6224*shell*r*l + 1.7781*head*r*r + 3.1661*shell*shell*l + 19.84*shell*shell*r
			return cost, []float64{
				0.0193*r - shell, 0.00954*r - head, 1296000 - math.Pi*r*r*l - 4*math.Pi/3*r*r*r, l - 240,
			}
		},
	}
}
