package testfunc

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Vector is a deterministic test function of several objectives, all to be minimised. Its
// slices belong to the caller who got it; Value is safe for concurrent use.
type Vector struct {
	// Name identifies the function, such as "zdt1-6" or "dtlz2-6-3", with its dimension
	// and, if that can be chosen, the number of objectives.
	Name string
	// Lower and Upper bound the domain, one number a coordinate, both inclusive.
	Lower, Upper []float64
	// Reference bounds the hypervolume that is measured, one number an objective.
	Reference []float64
	// Hypervolume is that of the exact front within Reference.
	Hypervolume float64
	// Source cites the definition.
	Source string
	// Value returns the objectives at x without changing x. They are finite on the whole
	// domain.
	Value func(x []float64) []float64
}

// Vectors returns every function of several objectives, sorted by name.
func Vectors() []Vector {
	all := []Vector{
		braninCurrin(),
		zdt("zdt1", 6, 120+2.0/3, func(f, g float64) float64 { return g * (1 - math.Sqrt(f/g)) }),
		zdt("zdt2", 6, 120+1.0/3, func(f, g float64) float64 { return g * (1 - f*f/(g*g)) }),
		zdt("zdt3", 6, 128.77811613069076, func(f, g float64) float64 {
			return g * (1 - math.Sqrt(f/g) - f/g*math.Sin(10*math.Pi*f))
		}),
		dtlz2(6, 2, 1.21-math.Pi/4), dtlz2(6, 3, 1.331-math.Pi/6), dtlz2(8, 5, 1.61051-math.Pi*math.Pi/60),
	}
	slices.SortFunc(all, func(a, b Vector) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// zdt is a function of Zitzler, Deb and Thiele: the first coordinate against a shape of it
// and of the mean of the others. At the front all others are 0.
func zdt(name string, d int, hypervolume float64, second func(f, g float64) float64) Vector {
	v := Vector{
		Name: fmt.Sprintf("%s-%d", name, d), Reference: []float64{11, 11}, Hypervolume: hypervolume,
		Source: "Zitzler, Deb and Thiele (2000), Comparison of Multiobjective Evolutionary Algorithms: Empirical Results",
		Value: func(x []float64) []float64 {
			g := 1.0
			for _, u := range x[1:] {
				g += 9 * u / float64(len(x)-1)
			}
			return []float64{x[0], second(x[0], g)}
		},
	}
	v.Lower, v.Upper = cube(d, 0, 1)
	return v
}

// dtlz2 has the positive part of the unit sphere as its front, where all but the first
// coordinates are ½.
func dtlz2(d, objectives int, hypervolume float64) Vector {
	v := Vector{
		Name: fmt.Sprintf("dtlz2-%d-%d", d, objectives), Reference: slices.Repeat([]float64{1.1}, objectives), Hypervolume: hypervolume,
		Source: "Deb, Thiele, Laumanns and Zitzler (2002), Scalable Multi-Objective Optimization Test Problems",
		Value: func(x []float64) []float64 {
			g := 0.0
			for _, u := range x[objectives-1:] {
				g += (u - 0.5) * (u - 0.5)
			}
			f := make([]float64, objectives)
			for k := range f {
				f[k] = 1 + g
				for _, u := range x[:objectives-1-k] {
					f[k] *= math.Cos(u * math.Pi / 2)
				}
				if k > 0 {
					f[k] *= math.Sin(x[objectives-1-k] * math.Pi / 2)
				}
			}
			return f
		},
	}
	v.Lower, v.Upper = cube(d, 0, 1)
	return v
}

// braninCurrin sets Branin's function against Currin's.
func braninCurrin() Vector {
	v := Vector{
		Name: "branin-currin", Reference: []float64{18, 6}, Hypervolume: 59.36011874867746,
		Source: "Belakaria, Deshwal and Doppa (2019), Max-value Entropy Search for Multi-Objective Bayesian Optimization; " +
			"the hypervolume is that of BoTorch 0.18.1",
		Value: func(x []float64) []float64 {
			a, b := 15*x[0]-5, 15*x[1]
			t := b - 5.1/(4*math.Pi*math.Pi)*a*a + 5/math.Pi*a - 6
			branin := t*t + 10*(1-1/(8*math.Pi))*math.Cos(a) + 10
			decay := 1.0
			if x[1] > 0 {
				decay = 1 - math.Exp(-1/(2*x[1]))
			}
			p, q := x[0], x[0]*x[0]
			currin := decay * (2300*q*p + 1900*q + 2092*p + 60) / (100*q*p + 500*q + 4*p + 20)
			return []float64{branin, currin}
		},
	}
	v.Lower, v.Upper = cube(2, 0, 1)
	return v
}
