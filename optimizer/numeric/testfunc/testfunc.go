// Package testfunc holds the synthetic functions of the papers that this project
// implements, each with its domain, minimum and minimisers.
//
// All of them are minimised. A name consists of the function's name, the dimension if
// several are usual, and -lgp if McCourt's evalset, and with it the paper on latent
// Gaussian processes, uses an unusual domain: ackley-6 is on [-32.768, 32.768]⁶,
// ackley-6-lgp on [-10, 30]⁶.
package testfunc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrUnknown means that no function or suite has the name.
var ErrUnknown = errors.New("unknown name")

// Function is a deterministic test function, to be minimised. Its slices belong to the
// caller who got it; Value is safe for concurrent use.
type Function struct {
	// Name identifies the function, such as "branin" or "ackley-6".
	Name string
	// Title is the name shown to people.
	Title string
	// Lower and Upper bound the domain, one number a coordinate, both inclusive.
	Lower, Upper []float64
	// Minimum is the least value on the domain.
	Minimum float64
	// Minimisers are points of the domain at which Value is Minimum, to rounding. There
	// is at least one; if there are very many, some are left out.
	Minimisers [][]float64
	// Source cites the definition.
	Source string
	// Value returns the function at x without changing x. It is finite on the whole
	// domain and panics if x does not have Dim coordinates.
	Value func(x []float64) float64
	// Feasible reports whether an evaluation at x succeeds; nil if all do. Minimum and
	// Minimisers refer to the feasible points.
	Feasible func(x []float64) bool
}

// Dim returns the number of coordinates.
func (f Function) Dim() int { return len(f.Lower) }

// Scale maps a point of the unit cube linearly to the domain: 0 to Lower, 1 to Upper.
// It returns a new slice and panics if u does not have Dim coordinates.
func (f Function) Scale(u []float64) []float64 {
	f.mustFit(len(u))
	x := make([]float64, len(u))
	for i, v := range u {
		// Both ends are exact, and rounding leaves nothing outside.
		x[i] = min(f.Upper[i], max(f.Lower[i], f.Lower[i]*(1-v)+f.Upper[i]*v))
	}
	return x
}

func (f Function) mustFit(n int) {
	if n != f.Dim() {
		panic(fmt.Sprintf("testfunc: %s takes %d coordinates, got %d", f.Name, f.Dim(), n))
	}
}

// checked returns f with a Value that panics on points of another dimension.
func checked(f Function) Function {
	value := f.Value
	guard := f // a copy, so that callers who change f's slices do not affect the check
	guard.Lower = slices.Clone(f.Lower)
	f.Value = func(x []float64) float64 {
		guard.mustFit(len(x))
		return value(x)
	}
	return f
}

// All returns every function, sorted by name, in slices of their own.
func All() []Function {
	all := slices.Concat(planar(), scalable(), hartmann(), evalset(), corrupted(), constrained())
	slices.SortFunc(all, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Names returns the name of every function, sorted.
func Names() []string {
	all := All()
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.Name
	}
	return names
}

// Get returns the function of that name, or ErrUnknown with the known names.
func Get(name string) (Function, error) {
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
	}
	return Function{}, fmt.Errorf("test function %q: %w; there are: %s", name, ErrUnknown, strings.Join(Names(), ", "))
}

// cube returns the bounds of [lower, upper] in dim coordinates.
func cube(dim int, lower, upper float64) (lo, up []float64) {
	return repeat(dim, lower), repeat(dim, upper)
}

func repeat(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }

// suites returns the names of each suite's functions.
func suites() map[string][]string {
	return map[string][]string{
		// Bodin et al. (2020), Table 3, and exponential-8, which one of them corrupts.
		"lgp": {
			"branin", "branin02", "powell-triple-log-12", "beale", "hartmann6", "griewank-2-lgp", "shubert01", "levy13",
			"cosine-mixture-10", "drop-wave-10-lgp", "deflected-corrugated-spring-10", "weierstrass-8", "cross-in-tray",
			"holder-table", "ackley-2-lgp", "ackley-6-lgp", "exponential-8", "corrupted-holder-table", "corrupted-exponential-8",
		},
		// Ha et al., Provably Efficient Bayesian Optimization with Unknown Gaussian
		// Process Hyperparameter Estimation, Section 7 and Appendix.
		"uhe": {"branin", "hartmann3", "deceptive-2", "h1"},
		// Maraval et al., Sample-Efficient Optimisation with Probabilistic Transformer
		// Surrogates (2022): BoTorch's sixteen, in 1, 2, 5 and 10 dimensions.
		"pt": {
			"beale", "branin", "bukin", "drop-wave", "egg-holder", "holder-table", "six-hump-camel", "three-hump-camel",
			"ackley-1", "dixon-price-1", "griewank-1", "levy-1", "rastrigin-1",
			"ackley-2", "dixon-price-2", "griewank-2", "levy-2", "rastrigin-2", "michalewicz-2", "rosenbrock-2", "styblinski-tang-2",
			"ackley-5", "dixon-price-5", "griewank-5", "levy-5", "rastrigin-5", "michalewicz-5", "rosenbrock-5", "styblinski-tang-5",
			"ackley-10", "dixon-price-10", "griewank-10", "levy-10", "rastrigin-10", "michalewicz-10", "rosenbrock-10",
			"styblinski-tang-10",
		},
		// Functions that can only be evaluated on a part of their domain.
		"constrained": {"branin-disk", "gardner-1", "gardner-2", "gramacy", "hartmann6-crash", "levy-5-crash"},
		// A small set of different shapes and dimensions. No minimiser is in the middle
		// of the domain, where many designs begin.
		"standard": {
			"branin", "six-hump-camel", "hartmann3", "levy-5", "rosenbrock-5", "styblinski-tang-5", "hartmann6", "ackley-6-lgp",
		},
	}
}

// Suites returns the names of the suites, sorted.
func Suites() []string { return slices.Sorted(maps.Keys(suites())) }

// Suite returns the functions of a suite, sorted by name: "lgp", "uhe" and "pt" are
// those of the papers on latent Gaussian processes, on unknown hyperparameters and on
// probabilistic transformers. "constrained" has those that cannot be evaluated
// everywhere, "standard" is a small set for studies of regret. The error is ErrUnknown
// and lists the suites.
func Suite(name string) ([]Function, error) {
	names, ok := suites()[name]
	if !ok {
		return nil, fmt.Errorf("suite of test functions %q: %w; there are: %s", name, ErrUnknown, strings.Join(Suites(), ", "))
	}
	return slices.DeleteFunc(All(), func(f Function) bool { return !slices.Contains(names, f.Name) }), nil
}
