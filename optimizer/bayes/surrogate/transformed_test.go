package surrogate

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

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

// Data have each form of their outcomes once, the plain one first.
func TestForms(t *testing.T) {
	plain := curve(t, study.Minimize, func(u float64) float64 { return math.Exp(12 * u) })
	if forms := plain.Forms(); len(forms) != 1 || plain.Plain() != plain {
		t.Errorf("plain data have %d forms", len(forms))
	}
	beyond := plain.Beyond(2, 1)
	forms := beyond.Forms()
	if len(forms) != 2 || beyond.Plain() != plain {
		t.Fatalf("%d forms", len(forms))
	}
	for i, d := range []*Data{plain, beyond} {
		if form := forms[i]; form.plain != nil || form.transform != d.transform || !slices.Equal(form.Y, d.Y) {
			t.Errorf("form %d is %+v, want %+v", i, form, d)
		}
	}
}

// The errors are those of models that were conditioned without the outcome, in its unit.
func TestErrors(t *testing.T) {
	const high = 1000.0
	for name, d := range map[string]*Data{
		"minimise": curve(t, study.Minimize, func(u float64) float64 { return math.Exp(12*u) + math.Sin(30*u) }).Beyond(2, 1),
		"maximise": curve(t, study.Maximize, func(u float64) float64 { return -math.Exp(12*u) - math.Sin(30*u) }).Beyond(2, 1),
	} {
		d = d.Forms()[1]
		options := Options{Kernel: Matern52}
		m, err := Fit(t.Context(), d, options, nil, optimizer.NewRand(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		var want []float64
		for left := range d.Y {
			if d.raw[left] > high {
				continue
			}
			rest := *d
			rest.X, rest.Y = mat.NewDense(len(d.Y)-1, 1, nil), nil
			for row := range d.Y {
				if row != left {
					rest.X.Set(len(rest.Y), 0, d.X.At(row, 0))
					rest.Y = append(rest.Y, d.Y[row])
				}
			}
			without, err := Condition(&rest, options, m.GP.Hyperparameters(), false)
			if err != nil {
				t.Fatal(err)
			}
			mean, _ := without.GP.Posterior(d.X.Slice(left, left+1, 0, 1))
			want = append(want, math.Abs(d.transform.Inverse(mean[0])-d.raw[left]))
		}
		got := m.Errors(high)
		if len(got) != len(want) || len(got) < 10 || len(got) == len(d.Y) {
			t.Fatalf("%s: %d errors, want %d", name, len(got), len(want))
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-6*math.Max(1, want[i]) {
				t.Errorf("%s: error %d is %v, without the outcome %v", name, i, got[i], want[i])
			}
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
