package testfunc

import "math"

const fromLGP = "Bodin et al., Modulating Surrogates for Bayesian Optimization (2020), Figure 8, over "

// corruption holds the four amplitudes of the sawteeth that the paper on latent
// Gaussian processes adds to a function.
type corruption [4]float64

// leftEnd keeps a minimiser on the low side of its jump despite rounding; it costs less
// than 1e-10 of the value.
const leftEnd = 1e-12

// corrupted returns the functions with added discontinuities, following the code
// printed in the paper, with that code's minima. The extremes in the paper's Table 6,
// (-20.99, 3.46) and (-0.99, -0.04), are estimates from random samples. -20.99 is below the
// minimum of this code, so the paper's runs used something else, and gaps are not comparable
// with the paper's.
func corrupted() []Function {
	holder := corrupt(
		plane("corrupted-holder-table", "Corrupted Hölder table", fromLGP+fromEvalset, -10, 10,
			// At the left end of a tooth in x₁, and at the best x₂ for it.
			-20.600318399678406, holderTable, []float64{-8 + leftEnd, -9.6652428080472733}),
		-holderMinimum, corruption{-0.03, 0.05, 0.08, 0.03})
	exponentials := corrupt(
		// Giving every coordinate the value of the one nearest to 0 raises neither term,
		// so the minimum is that over one coordinate.
		offCentre("corrupted-exponential-8", "Corrupted exponential, 8-D", 8, -0.7, 0.2, -1.2702527566061642, exponential,
			0.036875+leftEnd),
		1-math.Exp(-1.96), corruption{-0.03, 0.20, 0.16, 0.06})
	exponentials.Source = fromLGP + fromEvalset
	return []Function{checked(holder), checked(exponentials)}
}

// corrupt adds to f its range (maximum minus minimum) times the largest corruption
// among the coordinates.
func corrupt(f Function, valueRange float64, c corruption) Function {
	clean, lower, width := f.Value, f.Lower[0], f.Upper[0]-f.Lower[0]
	f.Value = func(x []float64) float64 {
		largest := math.Inf(-1)
		for _, v := range x {
			largest = max(largest, c.at((v-lower)/width))
		}
		return clean(x) + valueRange*largest
	}
	return f
}

// at returns the corruption at u of [0, 1]: the sum of four sawteeth in the first half
// of each quarter, and 0 in the second. It has the period 1, so that by the paper's code the
// bound 1 would take the value at 0. A search that tries the bounds would find a value
// there that no point beside it has. At 1 it has the limit from below instead.
func (c corruption) at(u float64) float64 {
	if u >= 1 || fraction(4*u) >= 0.5 {
		return 0
	}
	return c[0]*sawtooth(0.15+15*u) + c[1]*sawtooth(10*u) + c[2]*sawtooth(0.5+30*u) + c[3]*sawtooth(0.25+40*u)
}

// sawtooth rises from -1 to 1 over each period of length 1, which includes its left
// end.
func sawtooth(t float64) float64 { return 2*fraction(t) - 1 }

func fraction(t float64) float64 { return t - math.Floor(t) }
