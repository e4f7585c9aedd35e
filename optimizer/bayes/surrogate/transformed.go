package surrogate

import "github.com/fantasia-hpo/fantasia/optimizer/bayes/transform"

// Transform returns the transform from outcomes, lower being better, to Y. It is the
// zero Transform, which changes nothing, if nothing has completed.
func (d *Data) Transform() transform.Transform { return d.transform }

// Through returns the observations under another transform, which Fit must then use. It
// does not clip outliers.
func (d *Data) Through(t transform.Transform) *Data {
	other := *d
	other.plain = nil
	other.use(t, d.raw)
	return &other
}
