package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/hebo"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
)

// Tradeoff says whether two objectives conflict, by the posterior means of their models.
// Correlations are positive where both objectives get better together, whatever their directions.
type Tradeoff struct {
	A string `json:"a"`
	B string `json:"b"`
	// Front is the correlation along the recommended front; nil with fewer than three points on
	// it, or if an objective does not change along it. Space is that over the search space; nil
	// if an objective does not change there.
	Front *float64 `json:"front"`
	Space *float64 `json:"space"`
	// BestA and BestB are the points of the front that are best in each of the two.
	BestA End `json:"bestA"`
	BestB End `json:"bestB"`
}

// End is one end of a front: a trial, and what is expected of it in both objectives.
type End struct {
	Trial int     `json:"trial"`
	A     float64 `json:"a"`
	B     float64 `json:"b"`
}

// related is the least correlation, of either sign, that a statement calls a relation.
const related = 0.5

// fitOutlook fits the models of several objectives and of limits. There are none without them.
func (e *examination) fitOutlook(ctx context.Context, a study.Algorithm) error {
	if e.problem.Objectives == nil && len(e.problem.Limits) == 0 {
		return nil
	}
	options, _, err := modelOf(a)
	if err != nil { // an algorithm without a model
		options = hebo.DefaultOptions()
	}
	e.outlook, err = hebo.NewOutlook(ctx, options, e.problem)
	if errors.Is(err, hebo.ErrNoModel) {
		return fmt.Errorf("%w: %w", ErrTooLittle, err)
	}
	return err
}

// means returns what is expected of each objective, by row.
func (e *examination) means() []study.Values {
	list := make([]study.Values, len(e.outlook.Of))
	for row := range list {
		for _, o := range e.outlook.Objectives {
			list[row] = append(list[row], o.Mean[row])
		}
		if !study.Finite(list[row]...) {
			list[row] = nil
		}
	}
	return list
}

// tradeoffs compares each pair of objectives; it is nil for a single one. The error says why they
// cannot be compared.
func (e *examination) tradeoffs() ([]Tradeoff, error) {
	objectives := e.problem.Objectives
	if objectives == nil {
		return nil, nil
	}
	if err := e.weak(); err != nil {
		return nil, err
	}
	means := e.means()
	on := e.frontOf(means, e.within(-1))
	if len(on) == 0 {
		return nil, errors.New("this needs a trial within all limits")
	}
	along, over := make([][]float64, len(objectives)), make([][]float64, len(objectives))
	for k, o := range objectives {
		x := e.outlook.Objectives[k]
		for _, row := range on {
			along[k] = append(along[k], o.Direction.Cost(means[row][k]))
		}
		for _, z := range x.Model.GP.Mean(e.places) {
			mean, _ := x.Model.Data.Moments(z, 0)
			over[k] = append(over[k], o.Direction.Cost(mean))
		}
	}
	var list []Tradeoff
	for a := range objectives {
		for b := a + 1; b < len(objectives); b++ {
			end := func(k int) End {
				row := on[slices.Index(along[k], slices.Min(along[k]))]
				return End{e.problem.Observations[e.outlook.Of[row]].Trial, means[row][a], means[row][b]}
			}
			list = append(list, Tradeoff{
				A: objectives[a].Metric, B: objectives[b].Metric,
				Front: correlation(along[a], along[b]), Space: correlation(over[a], over[b]), BestA: end(a), BestB: end(b),
			})
		}
	}
	return list, nil
}

// weak says which objective's model predicts too little to judge by it; nil if all serve.
func (e *examination) weak() error {
	for k, o := range e.objectives() {
		m := e.outlook.Objectives[k].Model
		if share := predicted(m); share < usefulModel && stat.PopVariance(m.Data.Y, nil) > 0 {
			return fmt.Errorf("this needs a model of %s that explains at least %s of the variance of left-out trials, and it explains %s",
				o.Metric, percent(usefulModel), percent(max(0, share)))
		}
	}
	return nil
}

// frontOf returns the front of the means among some rows. Of rows with equal means it returns the first.
func (e *examination) frontOf(means []study.Values, rows []int) []int {
	some := make([]study.Values, len(means))
	for _, row := range rows {
		some[row] = means[row]
	}
	on := front.Of(e.objectives(), some)
	return slices.DeleteFunc(slices.Clone(on), func(row int) bool {
		return slices.ContainsFunc(on, func(other int) bool { return other < row && slices.Equal(means[other], means[row]) })
	})
}

// objectives returns all objectives, of which there may be one.
func (e *examination) objectives() []study.Objective {
	if e.problem.Objectives != nil {
		return e.problem.Objectives
	}
	return []study.Objective{{Metric: e.metric, Direction: e.problem.Direction}}
}

// correlation returns Pearson's of two samples; nil of fewer than three pairs, or if one of them
// does not vary.
func correlation(a, b []float64) *float64 {
	if len(a) < 3 {
		return nil
	}
	c := stat.Correlation(a, b, nil)
	if !study.Finite(c) {
		return nil
	}
	c = max(-1, min(1, c))
	return &c
}

// judgeObjectives says which objectives conflict, those that conflict most first.
func judgeObjectives(d *Diagnosis) (statement, evidence string) {
	pairs := slices.Clone(d.Objectives)
	slices.SortStableFunc(pairs, func(x, y Tradeoff) int { return cmp.Compare(x.order(), y.order()) })
	var sentences, together, unrelated, figures []string
	for i := range pairs {
		t := &pairs[i]
		name := t.A + " and " + t.B
		switch {
		case t.BestA.Trial == t.BestB.Trial:
			sentences = append(sentences, fmt.Sprintf("%s do not conflict: trial %d is the best in both.", name, t.BestA.Trial))
		case t.Front == nil || *t.Front <= -related:
			sentences = append(sentences, fmt.Sprintf("%s conflict: from one end of the front to the other, %s goes from %s to %s and %s from %s "+
				"to %s.",
				name, t.A, short(t.BestA.A), short(t.BestB.A), t.B, short(t.BestA.B), short(t.BestB.B)))
		case *t.Front >= related:
			together = append(together, name)
		default:
			unrelated = append(unrelated, name)
		}
		figures = append(figures, fmt.Sprintf("%s %s (%s over the space)", name, signed(t.Front), signed(t.Space)))
	}
	if together != nil {
		sentences = append(sentences, fmt.Sprintf("Better together along the front, so that one of them may be enough: %s.",
			strings.Join(together, "; ")))
	}
	if unrelated != nil {
		sentences = append(sentences, fmt.Sprintf("Hardly related along the front: %s.", strings.Join(unrelated, "; ")))
	}
	return strings.Join(sentences, " "), "correlations along the front: " + strings.Join(figures, ", ") + "; " + trials(d)
}

// order is where a pair comes among others: the most negative correlation along the front first.
func (t *Tradeoff) order() float64 {
	if t.Front == nil {
		return -1
	}
	return *t.Front
}

// signed formats a correlation.
func signed(c *float64) string {
	if c == nil {
		return "not known"
	}
	return fmt.Sprintf("%+.2f", *c)
}

// short formats a value with four digits.
func short(v float64) string { return view.Short(v, 4) }
