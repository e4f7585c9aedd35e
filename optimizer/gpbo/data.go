package gpbo

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/gp"
	"github.com/fantasia-hpo/fantasia/study"
)

// MaxPoints is the number of observations that a model is conditioned on at
// most: its cost grows with the third power.
const MaxPoints = 1000

// data are the observations as a model sees them: lower is better, standardised.
type data struct {
	x         *mat.Dense // a row for each observation, in ledger order; nil if none
	y         []float64
	of        []int // the observations' places in the problem
	completed int   // how many of them completed
	sign      float64
	scale     gp.Scale
}

// observe reads a problem's observations. Failed and infeasible ones have the
// worst value of the completed ones.
func observe(p *optimizer.Problem, encoding *optimizer.Encoding) *data {
	d := &data{sign: 1}
	if p.Direction == study.Maximize {
		d.sign = -1
	}
	values := make([]float64, len(p.Observations))
	worst := math.Inf(-1)
	for i, o := range p.Observations {
		values[i] = math.Inf(1)
		if o.Outcome == optimizer.OutcomeCompleted {
			values[i] = d.sign * o.Value
			worst = max(worst, values[i])
			d.completed++
		}
	}
	d.of = selection(values, MaxPoints)
	if len(d.of) == 0 || d.completed == 0 {
		return d
	}
	y := make([]float64, len(d.of))
	for row, i := range d.of {
		y[row] = min(values[i], worst)
	}
	drawIn(y)
	d.y, d.scale = gp.Standardize(y)
	d.x = mat.NewDense(len(d.of), max(1, encoding.Dim()), nil)
	for row, i := range d.of {
		copy(d.x.RawRowView(row), encoding.Encode(p.Observations[i].Point))
	}
	return d
}

// selection returns the places of at most limit of the values, ascending: of
// more than that the best two fifths, the latest three tenths, and for the rest
// an even share of those between.
func selection(values []float64, limit int) []int {
	all := make([]int, len(values))
	for i := range all {
		all[i] = i
	}
	if len(all) <= limit {
		return all
	}
	byValue := slices.Clone(all)
	slices.SortStableFunc(byValue, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		default:
			return 0
		}
	})
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

// drawIn lowers values above the upper outer fence to it: the upper quartile
// plus three times the distance of the quartiles (Tukey 1977, Exploratory Data
// Analysis, section 2E). A single absurd value, of an evaluation that diverged,
// would otherwise leave no spread between the good ones. Values below stay as
// they are: they are what is looked for.
func drawIn(y []float64) {
	sorted := slices.Sorted(slices.Values(y))
	n := len(sorted)
	low, high := sorted[n/4], sorted[(3*n)/4]
	fence := high + 3*(high-low)
	if n < 4 || !(high > low) {
		return
	}
	for i, v := range y {
		y[i] = min(v, fence)
	}
}

// mean returns a posterior mean in the objective's own units and direction.
func (d *data) mean(z float64) float64 { return d.sign * d.scale.FromStandard(z) }

// sd returns a posterior standard deviation in the objective's own units.
func (d *data) sd(variance float64) float64 { return d.scale.SDFromStandard(math.Sqrt(variance)) }
