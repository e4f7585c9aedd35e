package diagnosis

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/diagnose"
	"github.com/fantasia-hpo/fantasia/study"
)

// Importance is the share of the variance of the model's mean that a parameter
// accounts for, over the whole space and on the scale of the output transform.
// First is its share by itself (the first-order index), Total its share including
// all interactions (the total index). Constraints are ignored, and a conditional
// parameter counts where it is active.
type Importance struct {
	Parameter string  `json:"parameter"`
	First     float64 `json:"first"`
	Total     float64 `json:"total"`
	// Active is the number of completed trials in which the parameter was active.
	Active int `json:"active"`
}

// sensitivityPoints is the number of base points of the estimates. Each parameter
// costs as many further evaluations of the model.
const sensitivityPoints = 1024

// importance returns the parameters by importance, the largest first. The error
// says why they cannot be ranked.
func (e *examination) importance() ([]Importance, error) {
	columns := e.encoding.Columns()
	if need := perParameter * len(columns); len(e.problem.Observations) < need {
		return nil, fmt.Errorf("a ranking needs %d completed trials for each of the %d parameters, %d in all", perParameter, len(columns), need)
	}
	if e.explained() < usefulModel {
		return nil, errWeakModel
	}
	s, err := diagnose.Sobol(func(x *mat.Dense) []float64 { return e.used.GP.Mean(e.settled(x)) },
		len(columns), sensitivityPoints, e.problem.Seed)
	if err != nil {
		return nil, fmt.Errorf("there are too many parameters: %w", err)
	}
	list := make([]Importance, len(columns))
	for i, c := range columns {
		list[i] = Importance{Parameter: c.Parameter.Name, First: share(s.First[i]), Total: share(s.Total[i]), Active: e.active(c.Parameter.Name)}
		if !study.Finite(list[i].First, list[i].Total) {
			return nil, errTooLarge
		}
	}
	// By the total: a parameter that acts only together with others has a first-order index of 0.
	slices.SortStableFunc(list, func(a, b Importance) int { return cmp.Compare(b.Total, a.Total) })
	return list, nil
}

// active counts the completed trials in which a parameter was active.
func (e *examination) active(parameter string) int {
	n := 0
	for _, o := range e.problem.Observations {
		if _, ok := o.Point[parameter]; ok {
			n++
		}
	}
	return n
}

// share limits an estimate of a share to [0, 1]: estimates of small indices from finitely many points can
// be negative.
func share(v float64) float64 { return min(max(v, 0), 1) }

// settled returns the places of the points at x, with each inactive parameter at the
// one place where the encoding puts it.
func (e *examination) settled(x *mat.Dense) *mat.Dense {
	conditional := false
	for _, c := range e.encoding.Columns() {
		conditional = conditional || len(c.Parameter.When) > 0
	}
	if !conditional {
		return x
	}
	rows, dim := x.Dims()
	at := mat.NewDense(rows, dim, nil)
	for i := range rows {
		at.SetRow(i, e.encoding.Encode(e.encoding.Decode(x.RawRowView(i))))
	}
	return at
}
