package cmaes

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// boundTries is how often a draw is repeated that lies outside the cube, before it is
// moved to the bound.
const boundTries = 100

// drawer draws points from the memory's distributions.
type drawer struct {
	t     *task
	m     *memory
	roots spectrum
	// at is the latest draw's numeric coordinates, before they are rounded; x is the whole
	// draw.
	at, x []float64
	// stuck is set if no draw could be suggested, and the last point came from elsewhere.
	stuck bool
}

func (t *task) drawer(m *memory) *drawer {
	d := &drawer{t: t, m: m}
	if m.Gaussian != nil {
		d.roots = m.Gaussian.spectrum()
	}
	return d
}

// draw returns a point that may be suggested.
func (d *drawer) draw() (study.Point, error) {
	p, err := d.t.r.Sampler.Draw(d.stream)
	if err != nil {
		return nil, err
	}
	encoding := d.t.r.Encoding
	d.stuck = !slices.Equal(encoding.Encode(encoding.Decode(d.x)), encoding.Encode(p))
	return p, nil
}

// stream sets x to a draw.
func (d *drawer) stream(x []float64) {
	d.at = nil
	if d.m.Gaussian != nil {
		d.at = d.inside()
		for k, i := range d.t.numericAt {
			x[i] = min(1, max(0, d.at[k]))
		}
	}
	if d.m.Choices != nil {
		for k, chosen := range d.m.Choices.sample(d.t.r.Rand) {
			i := d.t.categorical[k]
			x[i] = d.t.r.Encoding.Columns()[i].Place(chosen)
		}
	}
	d.t.r.Encoding.Project(x)
	d.x = append(d.x[:0], x...)
}

// inside returns numeric coordinates whose continuous ones lie in the cube.
func (d *drawer) inside() []float64 {
	var v []float64
	for range boundTries {
		v = d.m.Gaussian.sample(d.roots, d.t.r.Rand)
		if d.t.bounded(v) {
			return v
		}
	}
	for i, c := range d.t.numeric {
		if c.Levels == 0 {
			v[i] = min(1, max(0, v[i]))
		}
	}
	return v
}

// bounded reports whether the continuous coordinates lie in the cube.
func (t *task) bounded(v []float64) bool {
	for i, c := range t.numeric {
		if c.Levels == 0 && !(v[i] >= 0 && v[i] <= 1) {
			return false
		}
	}
	return true
}
