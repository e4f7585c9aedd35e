package hebo

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// negligible is the share of the outcomes' variance up to which noise does not matter.
const negligible = 0.01

// unexplained returns which share of the outcomes' variance the model cannot predict from the other
// evaluations. It is the noise, or detail that the model has not learnt: see evenOdds.
func unexplained(m *surrogate.Model) float64 {
	residual, _ := m.GP.LeaveOneOut()
	share := 0.0
	for _, r := range residual {
		share += r * r / float64(len(residual)) // outcomes are standardised
	}
	return share
}

// Doubt implements what optimizer.Guard asks when every point of a finite space has been evaluated or
// is pending: it returns the best one again if the evaluations may be noisy, nobody has said whether they
// are, and no two of them have told. If both agree, the space is exhausted. It never does so for an
// objective that the model predicts, as one without noise mostly is.
func (o proposer) Doubt(ctx context.Context, r *optimizer.Request) (again optimizer.Suggestion, ok bool) {
	if !o.options.Replicate || o.options.Noise != NoiseAuto || r.Objectives != nil || r.Limits != nil {
		return again, false
	}
	d := surrogate.Observe(r.Problem, r.Encoding, o.options.Surrogate)
	if d.Completed < probeFrom || surrogate.NoiseOf(d.Places()) != surrogate.NoiseUnknown {
		return again, false
	}
	m, err := surrogate.Fit(ctx, d, o.options.Surrogate, readMemory(r.State, o.options.Surrogate.NumParams(r.Encoding)).Fitted, r.Rand)
	if err != nil || unexplained(m) < negligible {
		return again, false
	}
	var free []loop.Place // a place where an evaluation is pending is not asked again
	for _, p := range m.Data.Places() {
		if x := m.Data.X.RawRowView(p.Row); !r.Sampler.BusyAt(x) {
			free = append(free, loop.Place{Point: r.Observations[m.Data.Of[p.Row]].Point, X: x})
		}
	}
	if len(free) == 0 {
		return again, false
	}
	mean, variance := bayes.Gaussian(m.GP).Posterior(loop.Rows(free))
	best := loop.Lowest(mean, 1)[0]
	again = optimizer.Suggestion{Point: free[best].Point, Source: optimizer.SourceModel, Repeat: true}
	expected, sd := m.Data.Moments(mean[best], variance[best])
	again.Reasons = optimizer.Reasons{
		Mean: loop.Finite(expected), SD: loop.Finite(sd), Pending: len(r.Pending),
		Note: "every point has been evaluated; evaluated again: do evaluations differ?",
	}
	return again, true
}
