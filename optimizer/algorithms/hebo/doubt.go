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

// fitFloored fits a model. If the model predicts its data badly, it is fitted again with a floor for the noise: half
// of the variance that the first fit does not explain. Without a floor the model would follow every value, and be
// sure of the luckiest one.
func fitFloored(fit func(floor float64) (*surrogate.Model, error)) (*surrogate.Model, error) {
	m, err := fit(0)
	if err != nil {
		return m, err
	}
	if share := unexplained(m); share > negligible {
		return fit(share / 2)
	}
	return m, nil
}

// Doubt implements what optimizer.Guard asks when every point of a finite space has been evaluated or
// is pending: it returns a good one again if the evaluations may be noisy, nobody has said whether they
// are, and no two of them have told. If both agree, the space is exhausted. It never does so for
// objectives and limits that the models predict, as those without noise mostly are.
func (o proposer) Doubt(ctx context.Context, r *optimizer.Request) (again optimizer.Suggestion, ok bool) {
	if !o.options.Replicate || o.options.Noise != NoiseAuto {
		return again, false
	}
	objectives, doubts := o.doubts(ctx, r)
	if !doubts {
		return again, false
	}
	first := objectives[0]
	var free []loop.Place // a place where an evaluation is pending is not asked again
	var within []bool
	some := false
	for _, p := range first.Data.Places() {
		if x := first.Data.X.RawRowView(p.Row); !r.Sampler.BusyAt(x) {
			observed := &first.of.Observations[first.Data.Of[p.Row]]
			free = append(free, loop.Place{Point: observed.At(), X: x})
			within = append(within, observed.Within())
			some = some || observed.Within()
		}
	}
	if len(free) == 0 {
		return again, false
	}
	sum := make([]float64, len(free)) // of all objectives, whose outcomes are standardised
	for _, m := range objectives {
		mean, _ := bayes.Gaussian(m.GP).Posterior(loop.Rows(free))
		for i := range sum {
			sum[i] += mean[i]
		}
	}
	best := -1
	for i := range sum {
		if (within[i] || !some) && (best < 0 || sum[i] < sum[best]) {
			best = i
		}
	}
	again = optimizer.Suggestion{Point: free[best].Point, Source: optimizer.SourceModel, Repeat: true}
	mean, variance := bayes.Gaussian(first.GP).Posterior(loop.Rows(free[best : best+1]))
	expected, sd := first.Data.Moments(mean[0], variance[0])
	again.Reasons = optimizer.Reasons{
		Mean: loop.Finite(expected), SD: loop.Finite(sd), Pending: len(r.Pending),
		Note: "every point has been evaluated; evaluated again: do evaluations differ?",
	}
	return again, true
}

// doubted is a model of one objective or limit, with the problem that it is of.
type doubted struct {
	*surrogate.Model
	of *optimizer.Problem
}

// doubts returns the models of the objectives. doubts is true if a model of an objective or of a limit predicts
// badly, and no point was evaluated twice, so that nobody knows whether evaluations are noisy.
func (o proposer) doubts(ctx context.Context, r *optimizer.Request) (objectives []doubted, doubts bool) {
	config := o.options.Surrogate
	warm := readMemory(r.State, config.NumParams(r.Encoding)).Fitted
	problems := []*optimizer.Problem{r.Problem}
	if r.Objectives != nil {
		problems, warm, config.Transform = nil, nil, false
		for k := range r.Objectives {
			problems = append(problems, r.Alone(k))
		}
	}
	n := len(problems)
	for k := range r.Limits {
		problems = append(problems, r.Bounded(k))
	}
	for k, p := range problems {
		if k == n {
			warm, config.Transform = nil, false
		}
		d := surrogate.Observe(p, r.Encoding, config)
		if d.Completed < probeFrom || surrogate.NoiseOf(d.Places()) != surrogate.NoiseUnknown {
			return nil, false
		}
		m, err := surrogate.Fit(ctx, d, config, warm, r.Rand)
		if err != nil {
			return nil, false
		}
		if doubts = doubts || unexplained(m) >= negligible; k < n {
			objectives = append(objectives, doubted{m, p})
		}
	}
	return objectives, doubts
}
