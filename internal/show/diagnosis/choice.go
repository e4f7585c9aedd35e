package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/hebo"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

// Choice shows why a model chose a point, by a model that is fitted again to what was known
// then.
type Choice struct {
	// Own means that the model has the study's settings of hebo or gp. Otherwise the study's
	// algorithm has a model of another kind, and this one has the default settings of hebo.
	Own bool
	// Acquisition is the name of the function by which the algorithm chose; empty if not Own.
	Acquisition string
	// Ended is how many trials had ended, Used how many of them the model was fitted to.
	Ended, Used int
	// Pending is how many points were pending, Assumed for how many of them the model
	// assumed values.
	Pending, Assumed int
	// Again means that the point had been evaluated before.
	Again bool
	// Lines go through the point, along one parameter each. The first has the largest
	// differences in what the model expected.
	Lines []Line
}

// Line is what a model expected along a parameter, with all others as in a point.
type Line struct {
	Parameter string
	// At are places on the parameter's axis, in order, and Here is the place of the point
	// among them. The value of a parameter that is no number is the number of its level.
	At   []float64
	Here int
	// Expected is what the model expected, without noise. Worth is the acquisition
	// function as a share of its largest value on all lines; nil if there is none. It is 0
	// where constraints exclude the place.
	Expected []Expected
	Worth    []float64
	swing    float64
}

const (
	// maxChoicePoints bounds the observations to which the model of a choice is fitted, and
	// maxChoicePending the pending points that it allows for.
	maxChoicePoints  = 300
	maxChoicePending = 200
)

// ErrNoChoice says that no model chose a point, or that there is none to show.
var ErrNoChoice = errors.New("no picture of this choice")

// Explain returns why a point was chosen. The problem's observations are those that the
// algorithm knew, in their order, its pending points those that had not ended, and its First
// is the point's number. At most most lines are returned. The error is ctx's, or wraps
// ErrNoChoice and says why.
func Explain(ctx context.Context, s *study.Study, p *optimizer.Problem, at study.Point, most int) (*Choice, error) {
	options, own, err := modelOf(s.Spec.Algorithm)
	if err != nil {
		return nil, err
	}
	encoding := optimizer.NewEncoding(p.Space)
	place := encoding.Encode(at)
	c := &Choice{Own: own, Ended: len(p.Observations), Pending: len(p.Pending)}
	completed := 0
	for _, o := range p.Observations {
		if o.Outcome == optimizer.OutcomeCompleted {
			completed++
		}
		c.Again = c.Again || slices.Equal(encoding.Encode(o.Point), place)
	}
	if !own && completed < MinCompleted {
		return nil, fmt.Errorf("%w: %d trials had completed, and its model needs %d", ErrNoChoice, completed, MinCompleted)
	}
	q := *p
	q.Pending = q.Pending[max(0, len(q.Pending)-maxChoicePending):]
	c.Assumed = len(q.Pending)
	l, err := hebo.NewLandscape(ctx, options, &q, maxChoicePoints)
	switch {
	case errors.Is(err, hebo.ErrNoModel):
		return nil, fmt.Errorf("%w: %w", ErrNoChoice, err)
	case err != nil:
		return nil, err
	}
	c.Used = len(l.Data().Of)
	if own {
		c.Acquisition = l.Acquisition()
	}
	for i, column := range encoding.Columns() {
		if _, active := at[column.Parameter.Name]; active {
			c.Lines = append(c.Lines, line(l, &q, encoding, i, place))
		}
	}
	c.scale()
	slices.SortStableFunc(c.Lines, func(a, b Line) int { return cmp.Compare(b.swing, a.swing) })
	c.Lines = c.Lines[:min(most, len(c.Lines))]
	return c, nil
}

// modelOf returns the options of the model for a study's algorithm, and whether they are
// the algorithm's own.
func modelOf(a study.Algorithm) (o hebo.Options, own bool, err error) {
	known, err := registry.New(a.Name, a.Settings)
	if err != nil {
		return o, false, fmt.Errorf("%w: %w", ErrNoChoice, err)
	}
	if _, blind := known.(optimizer.Blind); blind {
		return o, false, fmt.Errorf("%w: %s chooses points without a model", ErrNoChoice, a.Name)
	}
	var set setting.Set
	switch a.Name {
	case "", registry.Default:
		set = hebo.Settings()
	case "gp":
		set = hebo.PlainSettings()
	default:
		return hebo.DefaultOptions(), false, nil
	}
	values, err := set.Parse(a.Settings)
	if err != nil {
		return o, false, fmt.Errorf("%w: %w", ErrNoChoice, err)
	}
	return hebo.FromSettings(values), true, nil
}

// choiceSteps is the number of evenly spread places along a numeric parameter's axis. An
// acquisition function is narrow where it counts, so there are more around the point.
const choiceSteps = 49

// aroundIt are the distances of further places from the point, in the unit interval.
var aroundIt = []float64{0.002, 0.005, 0.01, 0.015, 0.025, 0.035, 0.05, 0.07}

// line looks along a column through the point at place. Worth is as the function has it, −Inf
// where constraints exclude a place.
func line(l *hebo.Landscape, p *optimizer.Problem, encoding *optimizer.Encoding, column int, place []float64) Line {
	c := encoding.Columns()[column]
	found := Line{Parameter: c.Parameter.Name}
	x := slices.Clone(place)
	var points []study.Point
	var feasible []bool
	for _, u := range stepsOf(c, place[column]) {
		x[column] = u
		point := encoding.Decode(x)
		at := Place(&c.Parameter, point[found.Parameter])
		if n := len(found.At); math.IsNaN(at) || n > 0 && at == found.At[n-1] && u != place[column] {
			continue
		} else if n > 0 && at == found.At[n-1] { // the point itself replaces its neighbour
			found.At, points, feasible = found.At[:n-1], points[:n-1], feasible[:n-1]
		}
		if u == place[column] {
			found.Here = len(found.At)
		}
		found.At, points, feasible = append(found.At, at), append(points, point), append(feasible, p.Space.Feasible(point))
	}
	worth, mean, variance := l.At(points)
	low, high := math.Inf(1), math.Inf(-1)
	for i := range points {
		found.Expected = append(found.Expected, expected(l.Data(), p.Direction, mean[i], math.Sqrt(variance[i])))
		low, high = min(low, mean[i]), max(high, mean[i])
		if !feasible[i] {
			worth[i] = math.Inf(-1)
		}
	}
	found.Worth, found.swing = worth, high-low
	return found
}

// stepsOf returns places along a column, here among them, in order.
func stepsOf(c optimizer.Column, here float64) (steps []float64) {
	if c.Parameter.Type != study.Float && c.Parameter.Type != study.Int {
		for k := range c.Levels {
			u := c.Place(k)
			if c.Level(here) == k {
				u = here
			}
			steps = append(steps, u)
		}
		return steps
	}
	steps = append(steps, here)
	for k := range choiceSteps {
		steps = append(steps, float64(k)/(choiceSteps-1))
	}
	for _, d := range aroundIt {
		for _, u := range []float64{here - d, here + d} {
			if u > 0 && u < 1 {
				steps = append(steps, u)
			}
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// Place returns the place of a value on its parameter's axis: a number, also one outside of
// the range, which was edited, or the place of a choice among all; NaN if it has none.
func Place(p *study.Parameter, value any) float64 {
	if p.Type == study.Float || p.Type == study.Int {
		if v, ok := study.Number(value); ok {
			return v
		}
		return math.NaN()
	}
	if converted, err := p.Convert(value); err == nil {
		if k, ok := p.Index(converted); ok {
			return float64(k)
		}
	}
	return math.NaN()
}

// scale turns logarithms into shares of the largest value, and leaves the function out if
// there is none.
func (c *Choice) scale() {
	highest := math.Inf(-1)
	for i := range c.Lines {
		for _, w := range c.Lines[i].Worth {
			highest = max(highest, w)
		}
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		if c.Acquisition == "" || math.IsInf(highest, 0) {
			l.Worth = nil
			continue
		}
		for k, w := range l.Worth {
			l.Worth[k] = math.Exp(w - highest)
		}
	}
}
