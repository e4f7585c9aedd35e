package loop

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
)

// Member is one of the models over which the acquisition function is averaged: a sample of
// the hyperparameters, or the model of one of several objectives or of a limit.
type Member struct {
	Model     bayes.Surrogate
	Fantasies bayes.Fantasies
	Known     bayes.Known
	// Mean and Variance are the posterior at the incumbents' rows, then at the places',
	// as refresh found it.
	Mean, Variance []float64

	at *gp.Candidates // the known places, then Places
	// floor is the lowest mean at a point picked so far, at the time it was picked.
	floor float64
}

func newMember(model bayes.Surrogate) *Member {
	return &Member{Model: model, Fantasies: model.Fantasies(), floor: math.Inf(1)}
}

// members returns all members.
func (l *Loop) members() []*Member { return append([]*Member{l.Main}, l.Others...) }

// models returns all members and the models of the limits.
func (l *Loop) models() []*Member {
	if l.Limits == nil {
		return l.members()
	}
	return append(l.members(), l.Limits.members...)
}

// cacheCandidates makes the places candidates of all models, so that their posterior after
// another pending point costs O(n) each (gp.Candidates).
func (l *Loop) cacheCandidates() {
	x := Rows(append(slices.Clone(l.known), l.Places...))
	for _, m := range l.models() {
		m.at = m.Fantasies.Candidates(x)
	}
}

// refresh updates all models' posteriors at the places, and the members' incumbents. It MUST
// run after each pick: the pick has lowered the variances around it, and it may be the
// incumbent. The limits come first, since they decide which places may be incumbents.
func (l *Loop) refresh() {
	if l.Limits != nil {
		l.Limits.refresh(l.rows, l.Evaluated)
	}
	for _, m := range l.members() {
		m.Mean, m.Variance = m.at.Posterior()
		known := m.Mean[:l.Evaluated]
		if l.Options.Exact {
			known = l.Data.Y
		}
		m.Known.Incumbent = m.floor
		for i, mean := range known {
			if l.counting(i) {
				m.Known.Incumbent = min(m.Known.Incumbent, mean)
			}
		}
		if l.Options.AtBest {
			m.Known.Incumbent = m.Mean[0] // the incumbents are in order, best outcome first
		}
	}
	if l.Front != nil {
		l.Front.refresh(refreshed(l.members()), l.Evaluated, l.counting)
	}
}

// believe adds points without known values to all models, unless the options leave them out.
// Their values are the posterior mean (the kriging believer; Ginsbourger et al. 2010), so only
// the variances change. Without them, requests that overlap would all get the same point.
func (l *Loop) believe(x *mat.Dense) {
	if l.Options.IgnorePending {
		return
	}
	for _, m := range l.models() {
		m.Fantasies.Believe(x)
	}
}

// posterior is that of some places under one model.
type posterior struct {
	mean, variance []float64
}

// posteriors returns the posterior at the rows of x under each model.
func (l *Loop) posteriors(x mat.Matrix) []posterior {
	var all []posterior
	for _, m := range l.models() {
		mean, variance := m.Fantasies.Posterior(x)
		all = append(all, posterior{mean, variance})
	}
	return all
}

// refreshed returns the posteriors of models as refresh left them.
func refreshed(models []*Member) []posterior {
	var all []posterior
	for _, m := range models {
		all = append(all, posterior{m.Mean, m.Variance})
	}
	return all
}

// moments returns the mean and the variance of the mixture of the members at a row of
// their posteriors.
func moments(of []posterior, row int) (mean, variance float64) {
	if len(of) == 1 {
		return of[0].mean[row], of[0].variance[row]
	}
	means := make([]float64, len(of))
	for i, p := range of {
		means[i] = p.mean[row]
	}
	mean = bayes.Average(means)
	for i, p := range of {
		variance += (p.variance[row] + (means[i]-mean)*(means[i]-mean)) / float64(len(of))
	}
	return mean, variance
}
