package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Law is a distribution of evaluations' durations with mean 1.
type Law struct {
	name     string
	quantile func(u float64) float64
}

// shapes are the default shapes of the laws that have one: the standard deviation of the
// duration's logarithm, and the exponent of the tail, whose variance is barely finite.
var shapes = map[string]float64{"lognormal": 1, "pareto": 2.5}

// LawNames returns the laws that ParseLaw accepts.
func LawNames() []string {
	return []string{"constant", "uniform", "half-normal", "exponential", "lognormal", "pareto"}
}

// ParseLaw returns the named law: constant; uniform on (0, 2); half-normal;
// exponential; lognormal, whose logarithm has the standard deviation 1, or σ in
// lognormal:0.5; pareto with the shape 2.5, or α > 1 in pareto:1.5.
func ParseLaw(text string) (Law, error) {
	name, shape, given := strings.Cut(text, ":")
	law := Law{name: text}
	value, err := strconv.ParseFloat(shape, 64)
	if given && (err != nil || math.IsInf(value, 0)) {
		return law, fmt.Errorf("law %q has the shape %q; want a number", text, shape)
	}
	usual, has := shapes[name]
	if given && !has {
		return law, fmt.Errorf("law %q has a shape, which only lognormal and pareto have", text)
	}
	if !given {
		value = usual
	}
	switch name {
	case "constant":
		law.quantile = func(float64) float64 { return 1 }
	case "uniform":
		law.quantile = func(u float64) float64 { return 2 * u }
	case "half-normal":
		// |Z|·√(π/2); the quantile of |Z| is √2·erf⁻¹(u).
		law.quantile = func(u float64) float64 { return math.Sqrt(math.Pi) * math.Erfinv(u) }
	case "exponential":
		law.quantile = func(u float64) float64 { return -math.Log1p(-u) }
	case "lognormal":
		return law.lognormal(value)
	case "pareto":
		return law.pareto(value)
	default:
		return law, fmt.Errorf("unknown law %q; want one of %s", text, strings.Join(LawNames(), ", "))
	}
	return law, nil
}

func (l Law) lognormal(sigma float64) (Law, error) {
	if !(sigma > 0 && sigma <= 5) {
		return l, fmt.Errorf("law %q has the shape %g; want a standard deviation above 0 and up to 5", l.name, sigma)
	}
	l.quantile = func(u float64) float64 {
		return math.Exp(sigma*math.Sqrt2*math.Erfinv(2*u-1) - sigma*sigma/2)
	}
	return l, nil
}

func (l Law) pareto(alpha float64) (Law, error) {
	if !(alpha > 1 && alpha <= 100) {
		return l, fmt.Errorf("law %q has the shape %g; want an exponent above 1 (for a finite mean) and up to 100", l.name, alpha)
	}
	scale := (alpha - 1) / alpha
	l.quantile = func(u float64) float64 { return scale * math.Pow(1-u, -1/alpha) }
	return l, nil
}

// String returns the law's name, as for ParseLaw.
func (l Law) String() string { return l.name }

// Draw returns the duration of a trial, independent of the optimiser, the mode and the
// order of draws.
func (l Law) Draw(seed uint64, trial int) float64 {
	// The middle of a cell of width 2^-53 is neither 0 nor 1.
	u := (float64(stream(seed, trial, streamDurations).Uint64()>>11) + 0.5) / (1 << 53)
	return l.quantile(u)
}

// The streams of random numbers of a trial.
const (
	streamDurations = 1
	streamNoise     = 2
	streamFailure   = 3
)

// stream returns a source of random numbers for a trial of a run.
func stream(seed uint64, trial int, of uint64) *rand.Rand {
	return rand.New(rand.NewPCG(mix(seed^mix(of)), mix(uint64(trial))))
}

// mix is SplitMix64's finaliser (Steele, Lea and Flood 2014): seeds that are
// close give unrelated streams.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
