package kernel

import "math"

// radial is a Matérn function of the distance r. With a = root·r,
//
//	k/σ² = (1 + a + square·a²) exp(−a)
//	−2·∂(k/σ²)/∂r² = slope·(1 + linear·a) exp(−a).
//
// The derivative is by r² and not by r: that by r has a factor δ/r, which is 0/0 where two points
// coincide, while ∂k/∂r² is finite there. (For ν = 3/2, k = (1 + a)e⁻ᵃ has dk/da = −a·e⁻ᵃ and
// da/dr² = 3/(2a), so that a cancels.)
type radial struct{ root, square, slope, linear float64 }

var (
	matern32 = radial{root: math.Sqrt(3), slope: 3}
	matern52 = radial{root: math.Sqrt(5), square: 1. / 3, slope: 5. / 3, linear: 1}
)

// covariances replaces v = −a by k, given e = exp(−a).
func (f *radial) covariances(v, e []float64, variance float64) {
	done := covariancesVector(v, e, f.square, variance)
	for j := done; j < len(v); j++ {
		v[j] = f.polynomial(v[j]) * float64(variance*e[j])
	}
}

func (f *radial) polynomial(v float64) float64 { return math.FMA(math.FMA(f.square, v, -1), v, 1) }

// slopes replaces v = −a by weight·(−2·∂(k/σ²)/∂r²) and returns Σ weight·k/σ²,
// summed in four lanes, given e = exp(−a). The lengths are multiples of four.
func (f *radial) slopes(v, e, weights []float64) float64 {
	var lanes [4]float64
	if !slopesVector(v, e, weights, f, &lanes) {
		f.slopesGo(v, e, weights, &lanes)
	}
	return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

func (f *radial) slopesGo(v, e, weights []float64, lanes *[4]float64) {
	for j, u := range v {
		we := float64(weights[j] * e[j])
		lanes[j%4] = math.FMA(f.polynomial(u), we, lanes[j%4])
		v[j] = math.FMA(-f.slope*f.linear, u, f.slope) * we
	}
}
