package surrogate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/transform"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/study"
)

// MaxPoints is the maximum number of observations that a model is conditioned on: its
// cost grows with the third power.
const MaxPoints = 1000

// Data are a study's observations as a model sees them: lower is better, standardised.
// Callers must not change them.
type Data struct {
	// X has a row for each observation, in ledger order, in the unit cube; nil if there
	// is nothing to learn from.
	X *mat.Dense
	Y []float64
	// Of holds the observations' indices in the problem.
	Of []int
	// Completed is how many of them completed.
	Completed int

	encoding  *optimizer.Encoding
	direction study.Direction
	transform transform.Transform
	// plain are the same data without a power transform, or before Beyond; nil if these data
	// have neither.
	plain *Data
	// logJacobian is the transform's log Jacobian at the outcomes.
	logJacobian float64
	completed   []bool    // by row
	raw         []float64 // by row, as Y before it was transformed
}

// Observe reads a problem's observations, at most o.Points of them. Failed and
// infeasible ones get the worst value of the completed ones, or are left out. Pruned ones
// have the value that they would probably have reached, but none that is worse than all completed
// ones. Without one, they were worse than those that went on, so they get the worst value.
func Observe(p *optimizer.Problem, encoding *optimizer.Encoding, o Options) *Data {
	d := &Data{encoding: encoding, direction: p.Direction}
	values := make([]float64, len(p.Observations))
	worst := math.Inf(-1)
	for i, o := range p.Observations {
		values[i] = math.Inf(1)
		if o.Outcome == optimizer.OutcomeCompleted {
			values[i] = min(max(d.direction.Cost(o.Values.First()), -math.MaxFloat64), math.MaxFloat64)
			worst = max(worst, values[i])
			d.Completed++
		}
	}
	for i, o := range p.Observations {
		if o.Outcome == optimizer.OutcomePruned {
			values[i] = worst
			if len(o.Values) > 0 {
				values[i] = min(max(d.direction.Cost(o.Values.First()), -math.MaxFloat64), worst)
			}
		}
	}
	limit := o.Points
	if limit == 0 {
		limit = MaxPoints
	}
	ranked := values
	if len(values) > limit {
		ranked = placeMeans(p, encoding, values)
	}
	d.Of = selection(ranked, limit)
	if o.Failures == FailuresModel || o.Failures == FailuresIgnore {
		d.Of = valuedOnly(ranked, limit)
	}
	if len(d.Of) == 0 || d.Completed == 0 {
		return d
	}
	y := make([]float64, len(d.Of))
	d.completed = make([]bool, len(d.Of))
	for row, i := range d.Of {
		y[row] = min(values[i], worst)
		d.completed[row] = p.Observations[i].Outcome == optimizer.OutcomeCompleted
	}
	d.raw = slices.Clone(y)
	d.X = mat.NewDense(len(d.Of), max(1, encoding.Dim()), nil)
	for row, i := range d.Of {
		copy(d.X.RawRowView(row), encoding.Encode(p.Observations[i].At()))
	}
	switch {
	case o.Paper && o.Transform:
		d.use(transform.Paper(y), y)
		return d
	case (o.Paper || o.Unclipped) && !o.Transform:
		d.use(transform.Standard(y), y)
		return d
	}
	// Fit chooses between the power transform and these plain data, so both are kept.
	d.use(transform.Plain(y), y)
	if !o.Transform {
		return d
	}
	if learnt := transform.Fit(y); learnt.Kind() != transform.KindStandard {
		plain := *d
		d.plain = &plain
		d.use(learnt, y)
	}
	return d
}

// placeMeans returns the values with those of each place replaced by their mean, so that
// selection does not prefer a place's lucky evaluations. Infinite values stay.
func placeMeans(p *optimizer.Problem, encoding *optimizer.Encoding, values []float64) []float64 {
	at := make(map[string][]int, len(values))
	keys := make([]string, len(values))
	for i, v := range values {
		if !math.IsInf(v, 1) {
			keys[i] = optimizer.KeyOf(encoding.Encode(p.Observations[i].At()))
			at[keys[i]] = append(at[keys[i]], i)
		}
	}
	means := slices.Clone(values)
	for i, key := range keys {
		if same := at[key]; len(same) > 1 && same[0] == i {
			var mean float64
			for _, j := range same {
				mean += values[j] / float64(len(same))
			}
			for _, j := range same {
				means[j] = mean
			}
		}
	}
	return means
}

// valuedOnly is selection among the finite values: those of completed and pruned ones.
func valuedOnly(values []float64, limit int) []int {
	var of []int
	var finite []float64
	for i, v := range values {
		if !math.IsInf(v, 1) {
			of, finite = append(of, i), append(finite, v)
		}
	}
	chosen := selection(finite, limit)
	for k, i := range chosen {
		chosen[k] = of[i]
	}
	return chosen
}

// use sets the outcomes by a transform of y.
func (d *Data) use(t transform.Transform, y []float64) {
	d.transform = t
	d.Y = make([]float64, len(y))
	t.Apply(d.Y, y)
	d.logJacobian = t.LogJacobian(y)
}

// selection returns the indices of at most limit of the values, ascending. The best ones are where the
// model must be exact. The latest ones are there because the optimiser has just asked for them: if the
// model did not see them, it would ask for the same again. The even share keeps the model from being
// sure of regions that it has left long ago. Of more
// values it takes the best two fifths, the latest three tenths, and an even share of
// those between.
func selection(values []float64, limit int) []int {
	all := indices.Upto(len(values))
	if len(all) <= limit {
		return all
	}
	byValue := make([]int, len(values))
	floats.ArgsortStable(slices.Clone(values), byValue)
	chosen := make([]bool, len(values))
	best, latest := limit*2/5, limit*3/10
	for _, i := range byValue[:best] {
		chosen[i] = true
	}
	left := limit - best
	for i := len(all) - 1; latest > 0; i-- {
		if !chosen[i] {
			chosen[i] = true
			latest--
			left--
		}
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return chosen[i] })
	for k := range left {
		chosen[rest[k*len(rest)/left]] = true
	}
	return slices.DeleteFunc(all, func(i int) bool { return !chosen[i] })
}

// Moments converts the model's mean and variance to the objective's mean and standard
// deviation, in its own units and direction.
func (d *Data) Moments(mean, variance float64) (m, sd float64) {
	m, sd = d.transform.Moments(mean, math.Sqrt(variance))
	return d.direction.Cost(m), sd
}

// Standard returns what a value of the objective becomes in the model's outcomes. It is
// finite for a finite value.
func (d *Data) Standard(value float64) float64 {
	z := []float64{min(max(d.direction.Cost(value), -math.MaxFloat64), math.MaxFloat64)}
	d.transform.Apply(z, z)
	return z[0]
}

// Transform returns the transform from outcomes, lower being better, to Y. It is the
// zero Transform, which changes nothing, if nothing has completed.
func (d *Data) Transform() transform.Transform { return d.transform }

// Beyond returns the observations with the outcomes above high squeezed as by transform.Beyond.
// high and width are finite costs: lower is better, in the objective's unit. Forms has both.
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

// Plain returns the observations before a power transform and before Beyond.
func (d *Data) Plain() *Data {
	for d.plain != nil {
		d = d.plain
	}
	return d
}

// Forms returns the observations once in each form of their outcomes: plain, under the power transform,
// and as after Beyond, as far as d has these. Fit must then use the form that it is given.
func (d *Data) Forms() []*Data {
	var forms []*Data
	for ; d != nil; d = d.plain {
		form := *d
		form.plain = nil
		forms = append(forms, &form)
	}
	slices.Reverse(forms)
	return forms
}

// Errors returns how far each outcome up to high is from what the model expects of it without it, in
// the objective's unit. high is a cost.
func (m *Model) Errors(high float64) []float64 {
	residual, _ := m.GP.LeaveOneOut()
	var errors []float64
	for row, z := range m.Data.Y {
		if y := m.Data.raw[row]; y <= high {
			errors = append(errors, math.Abs(m.Data.transform.Inverse(z-residual[row])-y))
		}
	}
	return errors
}
