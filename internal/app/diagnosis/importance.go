package diagnosis

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/diagnose"
)

// Importance is what share of the variance of the model's mean, over all of the
// space and as the output transform has it, a parameter accounts for: the
// first-order index by itself, the total one with all interactions that the
// parameter has a part in. Constraints are left aside, and a conditional parameter
// counts where it is active.
type Importance struct {
	Parameter string  `json:"parameter"`
	First     float64 `json:"first"`
	Total     float64 `json:"total"`
}

// sensitivityPoints is the number of base points of the estimates: each parameter
// costs as many values of the model again.
const sensitivityPoints = 1024

// importance returns the parameters by importance, the largest first. The error
// says why there is none.
func (e *examination) importance() ([]Importance, error) {
	columns := e.encoding.Columns()
	s, err := diagnose.Sobol(func(x *mat.Dense) []float64 { return e.used.GP.Mean(e.settled(x)) },
		len(columns), sensitivityPoints, e.problem.Seed)
	if err != nil {
		return nil, fmt.Errorf("there are too many of them: %w", err)
	}
	list := make([]Importance, len(columns))
	for i, c := range columns {
		list[i] = Importance{Parameter: c.Parameter.Name, First: share(s.First[i]), Total: share(s.Total[i])}
		if !finite(list[i].First, list[i].Total) {
			return nil, fmt.Errorf("the model's mean is too large for a number")
		}
	}
	slices.SortStableFunc(list, func(a, b Importance) int { return cmp.Compare(b.Total, a.Total) })
	return list, nil
}

// share is an estimate of what lies between 0 and 1.
func share(v float64) float64 { return min(max(v, 0), 1) }

// settled returns the places of the points at x: an inactive parameter is where
// every point has it.
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
