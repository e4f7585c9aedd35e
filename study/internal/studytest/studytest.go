// Package studytest makes parameters for tests.
package studytest

import (
	"math"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// Ptr returns a pointer to x.
func Ptr(x float64) *float64 { return &x }

// Numeric returns a parameter of type float or int; step 0 means none.
func Numeric(t study.Type, lo, hi, step float64, scale study.Scale) study.Parameter {
	p := study.Parameter{Name: "x", Type: t, Min: &lo, Max: &hi, Scale: scale}
	if step != 0 {
		p.Step = &step
	}
	return p
}

// DrawNumeric draws a valid float or int parameter of any scale and step.
func DrawNumeric(t *rapid.T) study.Parameter {
	scale := rapid.SampledFrom([]study.Scale{study.Linear, study.Log, study.Logit}).Draw(t, "scale")
	kind := rapid.SampledFrom([]study.Type{study.Float, study.Int}).Draw(t, "type")
	low, high := -1e6, 1e6
	switch {
	case scale == study.Log && kind == study.Int:
		low = 1
	case scale == study.Log:
		low = 1e-9
	case scale == study.Logit && kind == study.Float:
		low, high = 1e-9, 1-1e-9
	}
	a, b := rapid.Float64Range(low, high).Draw(t, "a"), rapid.Float64Range(low, high).Draw(t, "b")
	if kind == study.Int {
		a, b = math.Round(a), math.Round(b)
	}
	lo, hi := min(a, b), max(a, b)
	if lo == hi {
		t.Skip("an empty range")
	}
	step := 0.0
	if rapid.Bool().Draw(t, "stepped") {
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		step = (hi - lo) / float64(n)
		if kind == study.Int {
			step = max(1, math.Round(step))
		}
	}
	p := Numeric(kind, lo, hi, step, scale)
	space, err := celspace.New([]study.Parameter{p}, nil, nil)
	if err != nil {
		t.Skip(err)
	}
	return space.Parameters()[0]
}
