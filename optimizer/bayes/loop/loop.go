// Package loop is what every Bayesian optimiser does: it picks the points of one request,
// one after another. It spreads candidates, climbs the acquisition function from the best
// of them, and conditions the model on each pick and on the points that are still being
// evaluated. It knows no model and no acquisition function; both have their contracts in
// package bayes. An optimiser gives it the model, the function, and an ordered list of
// strategies.
package loop

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// incumbentsAmong is how many of the lowest observations are searched for the lowest
// posterior mean: a worse observation rarely has it.
const incumbentsAmong = 64

// hurried is the number of candidates when the time for a suggestion has run out.
const hurried = 100

// Options are the settings of a loop.
type Options struct {
	// Thompson leaves pending points out of the models: each function drawn from the posterior
	// has another minimum, which keeps points apart. Otherwise a pending point counts with the
	// posterior mean as its value (the kriging believer), which makes the models surer there.
	Thompson bool
	// Candidates is the number of points from which the search of the acquisition
	// function starts.
	Candidates int
	// Alone leaves pending points out of the models for another reason: the optimiser knows of
	// none.
	Alone bool
	// Exact makes the lowest observed outcome the incumbent, since evaluations are exact.
	// AtBest makes it the posterior mean at the point with the lowest outcome. Otherwise it is
	// the lowest posterior mean at an observed or pending point.
	Exact, AtBest bool
	// PriorWeight is how many evaluations the parameters' priors outweigh; 0 is a tenth
	// of the budget.
	PriorWeight float64
}

// Input is what a loop begins with.
type Input struct {
	Request *optimizer.Request
	// Data are the observations behind the models.
	Data *surrogate.Data
	// Models are fitted to Data, at least one. The acquisition function is averaged over
	// them: they are samples of the same model's posterior.
	Models []bayes.Surrogate
	// Feasibility is nil if every evaluation completes.
	Feasibility *surrogate.Feasibility
	Criterion   bayes.Acquisition
	// Front is nil for one objective. Otherwise there is a model of each objective, and
	// these replace Data's outcomes and Criterion.
	Front *Front
	// Limits is nil if every point counts. With limits the criterion is a logarithm.
	Limits *Limits
	// Batch holds the points that the request has chosen already.
	Batch []optimizer.Suggestion
}

// Member is one of the models over which the acquisition function is averaged.
type Member struct {
	Model     bayes.Surrogate
	Fantasies bayes.Fantasies
	Known     bayes.Known
	// Mean and Variance are the posterior at the incumbents' rows, then at the places',
	// as Look found it.
	Mean, Variance []float64

	at *gp.Candidates
	// floor is the lowest mean at a point picked so far, at the time it was picked.
	floor float64
}

// Loop picks the points of one request. It is not safe for concurrent use.
type Loop struct {
	Request   *optimizer.Request
	Data      *surrogate.Data
	Options   Options
	Criterion bayes.Acquisition
	// Front is nil for one objective.
	Front *Front
	// Limits is nil if every point counts.
	Limits *Limits
	// Main is the first member. Strategies that use one model use this.
	Main   *Member
	Others []*Member
	// Exact reports whether the places are all that exist.
	Exact bool
	// Places are the candidates; none was taken when the search began.
	Places []Place
	// Prior is the contribution of the parameters' priors to the places' values, LogP the
	// log probability that their evaluations complete.
	Prior, LogP []float64
	// Evaluated is the number of the incumbents' rows.
	Evaluated int
	// First is the number of the trial that the first point becomes, Picked the number of
	// points picked, Pending how many points are pending.
	First, Picked, Pending int
	// Repeats is how many completed evaluations repeat a completed point.
	Repeats int
	Chance  Chance
	// Beliefs are nil if no parameter has a prior, Trust is their weight.
	Beliefs *Beliefs
	Trust   float64

	known []Place         // the incumbents' and pending places
	rows  []int           // the incumbents' rows in the data
	seen  map[string]bool // all observed points
}

// New prepares the search for the points after in.Batch.
func New(ctx context.Context, in Input, o Options) *Loop {
	r, d := in.Request, in.Data
	l := &Loop{
		Request: r, Data: d, Options: o, Criterion: in.Criterion, Front: in.Front, Limits: in.Limits,
		Chance: newChance(in.Feasibility, d),
		First:  r.First + len(in.Batch), Pending: len(r.Pending) + len(in.Batch),
	}
	l.remember()
	for _, model := range in.Models {
		l.Others = append(l.Others, &Member{Model: model, Fantasies: model.Fantasies(), floor: math.Inf(1)})
	}
	l.Main, l.Others = l.Others[0], l.Others[1:]
	l.known = make([]Place, 0, incumbentsAmong+l.Pending)
	var good int
	l.rows, good = l.bestRows()
	for _, row := range l.rows {
		l.known = append(l.known, Place{X: d.X.RawRowView(row)})
	}
	evaluated := len(l.known)
	for _, p := range r.Pending {
		l.known = append(l.known, Place{p.Point, r.Encoding.Encode(p.Point)})
	}
	for _, b := range in.Batch {
		l.known = append(l.known, Place{b.Point, r.Encoding.Encode(b.Point)})
	}
	if len(l.known) > evaluated {
		l.believe(Rows(l.known[evaluated:]))
	}
	count := o.Candidates
	if ctx.Err() != nil {
		count = min(count, hurried)
	}
	if l.Beliefs = NewBeliefs(r.Encoding); l.Beliefs != nil {
		l.Trust = trust(o.PriorWeight, r)
	}
	l.Places = candidates(r, count, l.Beliefs, around(r, d, l.rows[:good]), l.Taken)
	l.LogP = make([]float64, len(l.Places))
	if l.Chance.model != nil && len(l.Places) > 0 {
		l.LogP = l.Chance.Log(Rows(l.Places))
	}
	l.Prior = l.Believed(l.Places)
	l.Exact = r.Remaining != nil && len(l.Places) == len(r.Remaining)
	l.Evaluated = len(l.known)
	l.watch()
	l.look()
	return l
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

// watch makes the places candidates of all models.
func (l *Loop) watch() {
	x := Rows(append(slices.Clone(l.known), l.Places...))
	for _, m := range l.models() {
		m.at = m.Fantasies.Candidates(x)
	}
}

// look updates all models' posteriors at the places, and the members' incumbents.
func (l *Loop) look() {
	if l.Limits != nil {
		l.Limits.look(l.rows, l.Evaluated)
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
		l.Front.look(looked(l.members()), l.Evaluated, l.counting)
	}
}

// Put adds places before the others.
func (l *Loop) Put(front []Place) {
	l.Places = append(front, l.Places...)
	l.Prior = append(l.Believed(front), l.Prior...)
	l.LogP = append(l.Chance.Log(Rows(front)), l.LogP...)
	l.watch()
}

// Known returns the rows of the incumbents and the pending points.
func (l *Loop) Known() *mat.Dense { return Rows(l.known) }

// remember records which points were observed.
func (l *Loop) remember() {
	l.seen = make(map[string]bool, len(l.Request.Observations))
	completed := make(map[string]bool, len(l.Request.Observations))
	for _, o := range l.Request.Observations {
		key := optimizer.KeyOf(l.Request.Encoding.Encode(o.Point))
		l.seen[key] = true
		if o.Outcome != optimizer.OutcomeCompleted {
			continue
		}
		if completed[key] {
			l.Repeats++
		}
		completed[key] = true
	}
}

// Taken reports whether the place at x was observed, is pending, or was picked.
func (l *Loop) Taken(x []float64) bool {
	return l.seen[optimizer.KeyOf(x)] || l.Request.Sampler.TakenAt(x)
}

// believe adds points without known values to all models, unless the options leave them out.
func (l *Loop) believe(x *mat.Dense) {
	if l.Options.Thompson || l.Options.Alone {
		return
	}
	for _, m := range l.models() {
		m.Fantasies.Believe(x)
	}
}

// Believed returns the contribution of the parameters' priors to the places' values.
func (l *Loop) Believed(places []Place) []float64 {
	values := make([]float64, len(places))
	for i := range values {
		values[i] = l.Trust * l.Beliefs.Log(nil, places[i].X, 0)
	}
	return values
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

// looked returns the posteriors of models as look left them.
func looked(models []*Member) []posterior {
	var all []posterior
	for _, m := range models {
		all = append(all, posterior{m.Mean, m.Variance})
	}
	return all
}

// value returns the value of a place without the parameters' priors, given its row in the
// posteriors and the logarithm of the probability that its evaluation completes.
func (l *Loop) value(of []posterior, row int, logP float64) float64 {
	return l.Chance.of(l.reward(), l.score(of[:1+len(l.Others)], row), l.probable(of, row, logP))
}

// reward reports whether the score is a reward. Otherwise it is a logarithm.
func (l *Loop) reward() bool { return l.Front == nil && l.Criterion.Reward() }

// score returns the criterion's average over the members, or what it makes of all
// objectives. It is 0 where there is nothing to improve on.
func (l *Loop) score(of []posterior, row int) float64 {
	if l.searching() {
		return 0
	}
	if l.Front != nil {
		return l.Front.by.Value(across(of, row))
	}
	first := l.Criterion.Value(&l.Main.Known, of[0].mean[row], of[0].variance[row])
	if len(l.Others) == 0 {
		return first
	}
	values := []float64{first}
	for i, m := range l.Others {
		values = append(values, l.Criterion.Value(&m.Known, of[i+1].mean[row], of[i+1].variance[row]))
	}
	return average(l.Criterion, values)
}

// average returns the average of a criterion's values: of the improvements, not of their
// logarithms.
func average(by bayes.Acquisition, values []float64) float64 {
	if by.Reward() {
		return bayes.Average(values)
	}
	return acquisition.LogMeanExp(values)
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
