package transform

import "math"

// The 16-point Gauss–Hermite rule for a standard normal variable: E[f(X)] ≈
// Σ weight·(f(node) + f(−node)), from testdata/hermite.py.
var (
	nodes = [...]float64{
		0.3867606045005573, 1.1638291005549648, 1.9519803457163334, 2.7602450476307014, 3.600873624171548, 4.492955302520011, 5.472225705949343,
		6.630878198393129,
	}
	weights = [...]float64{
		0.28656852123801213, 0.1583383727509496, 0.047284752354014026, 0.007266937601184733, 0.0005259849265739092, 1.5300032162487272e-05,
		1.3094732162868227e-07, 1.4978147231618397e-10,
	}
)

// Moments returns the mean and the standard deviation, in the outcomes' units,
// of the outcome whose transform is normal with the given mean and standard
// deviation sd ≥ 0, by 16-point Gauss–Hermite quadrature through Inverse.
//
// If the inverse has a heavy tail, these moments need not exist: for λ < 0 the range
// has an upper end that a normal variable passes with positive probability. The outcome
// is therefore clamped to a plausible range: that of the fitted outcomes without
// outliers, extended by its width to either side, and to Inverse(mean) if that lies
// further out. The moments grow with mean. They depend on a single λ, mean and sd,
// however far away an outlier was. Those of a KindStandard that clips nothing are
// exact.
func (t Transform) Moments(mean, sd float64) (m, s float64) {
	if t.kind == KindStandard && !t.clip.on {
		// A linear map has exact moments, however far from the outcomes.
		w := t.mean + t.sd*mean
		m, s = math.Ldexp(t.centre+t.scale*w, t.exponent), math.Ldexp(t.scale*t.sd*sd, t.exponent)
		return min(max(m, -math.MaxFloat64), math.MaxFloat64), min(s, math.MaxFloat64)
	}
	middle := t.Inverse(mean)
	if sd == 0 {
		return middle, 0
	}
	plausible := interval{min(t.bulk.low, middle), max(t.bulk.high, middle)}
	var values [2 * len(nodes)]float64
	for i, node := range nodes {
		values[2*i] = plausible.clamp(t.Inverse(mean + sd*node))
		values[2*i+1] = plausible.clamp(t.Inverse(mean - sd*node))
	}
	for i, v := range values {
		m += weights[i/2] * v
	}
	m = plausible.clamp(m) // rounding may leave the range at the largest numbers
	var reach, squares float64
	for _, v := range values { // halves, since a difference may overflow
		reach = max(reach, math.Abs(v/2-m/2))
	}
	if reach == 0 {
		return m, 0
	}
	for i, v := range values {
		d := (v/2 - m/2) / reach
		squares += weights[i/2] * d * d
	}
	return m, min(2*reach*math.Sqrt(squares), math.MaxFloat64)
}
