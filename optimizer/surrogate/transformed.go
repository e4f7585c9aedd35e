package surrogate

import "github.com/fantasia-hpo/fantasia/optimizer/transform"

// Transform returns what maps outcomes, lower being better, to Y; the zero
// Transform, which is none, where nothing has completed.
func (d *Data) Transform() transform.Transform { return d.transform }

// Through returns the observations as another transform shows them, and leaves
// Fit no choice between that and none. No outlier is drawn in.
func (d *Data) Through(t transform.Transform) *Data {
	other := *d
	other.plain = nil
	other.use(t, d.raw)
	return &other
}
