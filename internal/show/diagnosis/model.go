package diagnosis

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
)

// Model is the optimiser's default model, fitted to the trials of a study. All its values
// are in the objective's units. It is immutable and safe for concurrent use.
type Model struct{ e *examination }

// Examine diagnoses a study by the observations of its problem and ignores pending
// points. took has how long each observation took, 0 where it is not known; nil if none is.
// The study's settings must be valid. The same problem gives the same diagnosis. The error wraps
// ErrTooLittle if there are fewer than MinCompleted completed trials, no parameters, or no two
// different values; otherwise it is ctx's.
func Examine(ctx context.Context, s *study.Study, p *optimizer.Problem, took []time.Duration) (*Diagnosis, *Model, error) {
	e, err := newExamination(ctx, &s.Spec, p)
	if err != nil {
		return nil, nil, fmt.Errorf("study %q: %w", s.Metadata.Name, err)
	}
	d, err := e.diagnose(ctx, s, p, took)
	if err != nil {
		return nil, nil, err
	}
	return d, &Model{e}, nil
}

// certain is the number of standard deviations on either side of a normal variable's mean
// that hold 95% of it.
const certain = 1.959963984540054

// Expected is what the model expects: the median, and the range that holds 95%.
type Expected struct{ Median, Low, High float64 }

// LeftOut is what the model predicts for a trial from all the others, noise included.
type LeftOut struct {
	Trial    int
	Observed float64
	Expected
}

// LeftOut returns the predictions for the completed trials that the model was fitted to,
// in the order in which they ended.
func (m *Model) LeftOut() []LeftOut {
	data := m.e.used.Data
	residual, variance := m.e.used.GP.LeaveOneOut()
	list := make([]LeftOut, len(residual))
	for row, r := range residual {
		o := m.e.problem.Observations[data.Of[row]]
		list[row] = LeftOut{o.Trial, o.Values.First(), m.expected(data.Y[row]-r, math.Sqrt(variance[row]))}
	}
	return list
}

// expected converts a normal variable of the model to the objective's units.
func (m *Model) expected(mean, sd float64) Expected {
	return expected(m.e.used.Data, m.e.problem.Direction, mean, sd)
}

// expected converts a normal variable of a model of the data to the objective's units.
func expected(d *surrogate.Data, direction study.Direction, mean, sd float64) Expected {
	convert := func(z float64) float64 { return direction.Cost(d.Transform().Inverse(z)) }
	low, high := convert(mean-certain*sd), convert(mean+certain*sd)
	return Expected{convert(mean), min(low, high), max(low, high)}
}

const (
	// lineSteps is the number of places along a numeric parameter's axis, planeSteps that in
	// a plane of two.
	lineSteps, planeSteps = 25, 20
	// background is the number of points that a partial dependence averages over.
	background = 48
)

// axisOf returns the column of a parameter and places on its axis: in the unit interval,
// and as values. The value of a parameter that is no number is the number of its level.
// ok is false for a parameter with a single value.
func (m *Model) axisOf(parameter string, steps int) (column int, units, values []float64, ok bool) {
	for i, c := range m.e.encoding.Columns() {
		if c.Parameter.Name != parameter {
			continue
		}
		if c.Parameter.Type != study.Float && c.Parameter.Type != study.Int {
			for k := range c.Levels {
				units, values = append(units, c.Place(k)), append(values, float64(k))
			}
			return i, units, values, true
		}
		for k := range steps {
			value := c.Parameter.FromUnit(float64(k) / float64(steps-1))
			v, isNumber := study.Number(value)
			if n := len(values); isNumber && (n == 0 || v != values[n-1]) {
				units, values = append(units, c.Parameter.ToUnit(value)), append(values, v)
			}
		}
		return i, units, values, true
	}
	return 0, nil, nil, false
}

// Along returns what the model expects along a parameter, averaged over points all over
// the space at which the parameter is active: its partial dependence. The range is that
// of a single such point on average (Moosbauer et al. 2021, Explaining Hyperparameter
// Optimization via Partial Dependence Plots, section 4), without noise. It returns nil
// if the parameter has a single value or is never active.
func (m *Model) Along(parameter string) (at []float64, expected []Expected) {
	column, units, values, ok := m.axisOf(parameter, lineSteps)
	if !ok {
		return nil, nil
	}
	var rows [][]float64
	n, _ := m.e.places.Dims()
	for i := 0; i < n && len(rows) < background; i++ {
		point := m.e.encoding.Decode(m.e.places.RawRowView(i))
		if _, active := point[parameter]; active {
			rows = append(rows, m.e.places.RawRowView(i))
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	x := mat.NewDense(len(rows)*len(units), m.e.encoding.Dim(), nil)
	for k, u := range units {
		for i, row := range rows {
			x.SetRow(k*len(rows)+i, row)
			x.Set(k*len(rows)+i, column, u)
		}
	}
	mean, variance := m.e.used.GP.Posterior(m.e.settled(x))
	for k := range units {
		var sum, squares float64
		for i := range rows {
			sum += mean[k*len(rows)+i]
			squares += variance[k*len(rows)+i]
		}
		count := float64(len(rows))
		expected = append(expected, m.expected(sum/count, math.Sqrt(squares/count)))
	}
	return values, expected
}

// Took returns what a model of the trials' times expects along a parameter, in seconds: the partial dependence of its logarithm, as
// Along has it of the value. It returns nil where Along would, or if there is no such model.
func (m *Model) Took(parameter string) (at []float64, expected []Expected) {
	if m.e.clock == nil {
		return nil, nil
	}
	at, expected = (&Model{m.e.clock}).Along(parameter)
	for i, x := range expected {
		expected[i] = Expected{math.Exp(x.Median), math.Exp(x.Low), math.Exp(x.High)}
	}
	return at, expected
}

// Plane is what the model expects in the plane of the parameters X and Y: Mean[j][i] and
// SD[j][i] at Xs[i] and Ys[j].
type Plane struct {
	X, Y     string
	Xs, Ys   []float64
	Mean, SD [][]float64
}

// Plane returns what the model expects in the plane of two parameters, with all others as
// they are in a point. It returns nil if one of them is not active there, has a single
// value, or decides whether the other is active.
func (m *Model) Plane(x, y string, at study.Point) *Plane {
	_, activeX := at[x]
	_, activeY := at[y]
	columnX, unitsX, valuesX, okX := m.axisOf(x, planeSteps)
	columnY, unitsY, valuesY, okY := m.axisOf(y, planeSteps)
	if !activeX || !activeY || !okX || !okY || x == y {
		return nil
	}
	columns := m.e.encoding.Columns()
	if len(columns[columnX].Parameter.When[y]) > 0 || len(columns[columnY].Parameter.When[x]) > 0 {
		return nil
	}
	origin := m.e.encoding.Encode(at)
	points := mat.NewDense(len(unitsX)*len(unitsY), len(origin), nil)
	for j, v := range unitsY {
		for i, u := range unitsX {
			row := j*len(unitsX) + i
			points.SetRow(row, origin)
			points.Set(row, columnX, u)
			points.Set(row, columnY, v)
		}
	}
	mean, variance := m.e.used.GP.Posterior(m.e.settled(points))
	p := &Plane{X: x, Y: y, Xs: valuesX, Ys: valuesY}
	for j := range unitsY {
		means, sds := make([]float64, len(unitsX)), make([]float64, len(unitsX))
		for i := range unitsX {
			row := j*len(unitsX) + i
			means[i], sds[i] = m.e.used.Data.Moments(mean[row], variance[row])
		}
		p.Mean, p.SD = append(p.Mean, means), append(p.SD, sds)
	}
	return p
}

// Planes returns at most most planes of pairs of parameters, those of the first parameters
// first, with all others as they are in a point. It stops when ctx ends.
func (m *Model) Planes(ctx context.Context, parameters []string, at study.Point, most int) (planes []*Plane) {
	for b := range parameters {
		for a := range b {
			if len(planes) >= most || ctx.Err() != nil {
				return planes
			}
			if p := m.Plane(parameters[a], parameters[b], at); p != nil {
				planes = append(planes, p)
			}
		}
	}
	return planes
}

// recommend returns the trial that the study's algorithm recommends; nil if it has no
// model, as the API has it, or if it recommends a front.
func recommend(ctx context.Context, a study.Algorithm, p *optimizer.Problem) (trial *int, front bool, err error) {
	o, err := registry.New(a.Name, a.Settings)
	if err != nil {
		return nil, false, err
	}
	r, err := optimizer.Recommend(ctx, o, p, nil)
	if err != nil || r == nil || r.Front != nil {
		return nil, r != nil, err
	}
	return &r.Trial, false, nil
}
