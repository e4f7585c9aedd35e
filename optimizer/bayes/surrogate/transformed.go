package surrogate

import "github.com/fantasia-hpo/fantasia/optimizer/bayes/transform"

// Transform returns the transform from outcomes, lower being better, to Y. It is the
// zero Transform, which changes nothing, if nothing has completed.
func (d *Data) Transform() transform.Transform { return d.transform }

// Beyond returns the observations with the outcomes above high squeezed as by transform.Beyond.
// high and width are finite costs: lower is better, in the objective's unit. Fit takes these
// data or d, whichever make the observations more likely.
func (d *Data) Beyond(high, width float64) *Data {
	if d.raw == nil {
		return d
	}
	other := *d
	other.plain = d
	other.use(transform.Beyond(d.raw, high, width), d.raw)
	if other.transform == d.transform {
		return d
	}
	return &other
}

// Restate returns what an outcome of d is among those of other, which has the same objective.
func (d *Data) Restate(z float64, other *Data) float64 {
	if d.transform == other.transform {
		return z
	}
	value, _ := d.Moments(z, 0)
	return other.Standard(value)
}

// Through returns the observations under another transform, which Fit must then use. It
// does not clip outliers.
func (d *Data) Through(t transform.Transform) *Data {
	other := *d
	other.plain = nil
	other.use(t, d.raw)
	return &other
}
