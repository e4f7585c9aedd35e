package testfunc

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Noisy observes a function with Gaussian noise. It is safe for concurrent use and
// reproducible: the noise is a function of the seed, the evaluation's index and the
// noise's deviation at the point, regardless of earlier observations.
type Noisy struct {
	// Function is the observed function; its Value is free of noise.
	Function Function
	sd       func(x []float64) float64
	seed     uint64
}

// Noisy returns f observed with noise of standard deviation sd, in f's unit. It
// panics unless sd is finite and at least 0.
func (f Function) Noisy(sd float64, seed uint64) Noisy {
	mustDeviation(f.Name, sd)
	return Noisy{Function: f, seed: seed, sd: func([]float64) float64 { return sd }}
}

// Heteroscedastic returns f observed with noise whose standard deviation at x is sd(x).
// sd must be safe for concurrent use.
func (f Function) Heteroscedastic(sd func(x []float64) float64, seed uint64) Noisy {
	return Noisy{Function: f, seed: seed, sd: sd}
}

// SD returns the standard deviation of the noise at x.
func (n Noisy) SD(x []float64) float64 { return n.sd(x) }

// Observe returns the noisy value at x for the evaluation with the given index; another
// index gives an independent draw. It panics if x does not have the function's
// dimension, or if the deviation there is negative or not finite.
func (n Noisy) Observe(x []float64, evaluation uint64) float64 {
	value, sd := n.Function.Value(x), n.sd(x)
	mustDeviation(n.Function.Name, sd)
	// Hash neighbouring seeds and indices apart before they seed a generator.
	stream := rand.New(rand.NewPCG(mix(n.seed), mix(mix(n.seed)^evaluation)))
	return value + sd*stream.NormFloat64()
}

func mustDeviation(name string, sd float64) {
	if !(sd >= 0) || math.IsInf(sd, 1) {
		panic(fmt.Sprintf("testfunc: %s: a noise's standard deviation is finite and at least 0, got %v", name, sd))
	}
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
