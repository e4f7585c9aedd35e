package hebo

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// known returns what the model of each objective learns from: the data or, of an objective whose
// values are known early, these and the values of evaluations that did not complete.
func (o proposer) known(r *optimizer.Request, data []*surrogate.Data) []*surrogate.Data {
	known := slices.Clone(data)
	for k := range r.Objectives {
		if r.Objectives[k].Early {
			known[k] = surrogate.Observe(r.Known(k), r.Encoding, o.options.Surrogate)
		}
	}
	return known
}
