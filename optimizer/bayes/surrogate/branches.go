package surrogate

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/study"
)

// The bounds on branches: observations cannot distinguish more lengthscales.
const (
	maxBranchValues  = 8  // values of a parameter that decides which others are active
	maxBranchColumns = 32 // further columns in all
)

// branches returns the values of the parameters that decide which others are active,
// each with the numeric columns that are active under it and elsewhere. Such a
// parameter names an algorithm or a kernel, and other parameters change their meaning
// with it: a scale learnt under a value where the objective is flat must not make the
// model sure under other values. It returns nil if there are too many branches.
func branches(encoding *optimizer.Encoding) []kernel.Branch {
	var found []kernel.Branch
	count := 0
	columns := encoding.Columns()
	for i, decider := range columns {
		name := decider.Parameter.Name
		decides := slices.ContainsFunc(columns, func(c optimizer.Column) bool { return len(c.Parameter.When[name]) > 0 })
		if !decides || decider.Levels == 0 || decider.Levels > maxBranchValues {
			continue
		}
		for k := range decider.Levels {
			value := decider.Parameter.At(k)
			b := kernel.Branch{Column: i, Code: decider.Parameter.ToUnit(value)}
			for j, c := range columns {
				if j != i && !c.Categorical() && varies(c.Parameter, name, value) {
					b.Numeric = append(b.Numeric, j)
				}
			}
			if len(b.Numeric) > 0 {
				found = append(found, b)
				count += len(b.Numeric)
			}
		}
	}
	if count > maxBranchColumns {
		return nil
	}
	return found
}

// varies reports whether a parameter can be active under the deciding parameter's value
// and under another of its values. One that is active under a single value needs no second lengthscale:
// all that is learnt of it comes from there.
func varies(p study.Parameter, decider string, value any) bool {
	active, conditional := p.When[decider]
	return !conditional || len(active) > 1 && slices.Contains(active, value)
}
