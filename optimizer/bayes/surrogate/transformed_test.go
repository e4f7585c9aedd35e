package surrogate

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// curve returns the data of a function of one parameter at 30 points, not transformed.
func curve(t *testing.T, direction study.Direction, value func(u float64) float64) *Data {
	t.Helper()
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: direction}
	for i := range 30 {
		u := float64(i) / 29
		p.Observations = append(p.Observations, optimizer.Observation{
			Point: study.Point{"x1": u}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value(u)},
		})
	}
	o := DefaultOptions()
	o.Transform = false
	return Observe(p, optimizer.NewEncoding(p.Space), o)
}

// Values are squeezed where that makes the observations more likely, and stay as they are where
// it makes a simple function less so.
func TestFitChoosesWhatLiesBeyond(t *testing.T) {
	for _, c := range []struct {
		name        string
		value       func(u float64) float64
		high, width float64
		plain       bool
	}{
		{"exponential", func(u float64) float64 { return math.Exp(12 * u) }, 2, 1, false},
		{"a bowl", func(u float64) float64 { return (u - 0.3) * (u - 0.3) }, 0.02, 0.01, true},
	} {
		d := curve(t, study.Minimize, c.value).Beyond(c.high, c.width)
		m, err := Fit(t.Context(), d, Options{Kernel: Matern52}, nil, optimizer.NewRand(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if m.Plain() != c.plain {
			t.Errorf("%s: left as it is: %v, want %v", c.name, m.Plain(), c.plain)
		}
	}
}

// Outcomes of one model's data keep their value among those of another's.
func TestRestate(t *testing.T) {
	for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
		d := curve(t, direction, func(u float64) float64 { return direction.Cost(math.Exp(12 * u)) })
		beyond := d.Beyond(2, 1)
		for _, cost := range []float64{1, 1.5, 2, 40, 1e4} {
			value := direction.Cost(cost)
			there := d.Restate(d.Standard(value), beyond)
			if want := beyond.Standard(value); math.Abs(there-want) > 1e-9 {
				t.Errorf("%s: %g is %g, want %g", direction, value, there, want)
			}
			if back, want := beyond.Restate(there, d), d.Standard(value); math.Abs(back-want) > 1e-9 {
				t.Errorf("%s: %g came back as %g, want %g", direction, value, back, want)
			}
		}
		if got := d.Restate(12345, d); got != 12345 {
			t.Errorf("among the same data 12345 becomes %g", got)
		}
	}
}
