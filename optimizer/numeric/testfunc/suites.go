package testfunc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
