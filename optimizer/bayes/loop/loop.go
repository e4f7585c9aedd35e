package loop

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate/transfer"
)

// incumbentsAmong is how many of the lowest observations are searched for the lowest
// posterior mean: a worse observation rarely has it.
const incumbentsAmong = 64

// hurried is the number of candidates when the time for a suggestion has run out.
const hurried = 100

// Options are the settings of a loop.
type Options struct {
	// IgnorePending leaves pending points out of the models: for Thompson sampling, since each
	// function drawn from the posterior has another minimum, which keeps points apart, and for
	// an optimiser that knows of no pending points. Otherwise a pending point counts with the
	// posterior mean as its value (the kriging believer), which makes the models surer there.
	IgnorePending bool
	// Candidates is the number of points from which the search of the acquisition
	// function starts.
	Candidates int
	// Exact makes the lowest observed outcome the incumbent, since evaluations are exact.
	// AtBest makes it the posterior mean at the point with the lowest outcome. Otherwise it is
	// the lowest posterior mean at an observed or pending point.
	Exact, AtBest bool
	// PriorWeight is how many evaluations the parameters' priors outweigh; 0 is a tenth
	// of the budget.
	PriorWeight float64
	// Cost is nil if evaluations count alike, whatever they take.
	Cost *Cost
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
	// Earlier are the earlier studies that the model knows, which reasons name; nil if there are none.
	Earlier *transfer.Weighted
	// Moments returns the mean and the standard deviation of the objective with these moments of its model; nil if Data knows them.
	Moments func(mean, variance float64) (m, sd float64)
	// Front is nil for one objective. Otherwise there is a model of each objective, and
	// these replace Data's outcomes and Criterion.
	Front *Front
	// Limits is nil if every point counts. With limits the criterion is a logarithm.
	Limits *Limits
	// Batch holds the points that the request has chosen already.
	Batch []optimizer.Suggestion
}

// Loop picks the points of one request. It is not safe for concurrent use.
type Loop struct {
	Input
	Options Options
	// Main is the first member. Strategies that use one model use this.
	Main   *Member
	Others []*Member
	// Exact reports whether the places are all that exist.
	Exact bool
	// Places are the candidates; none was taken when the search began.
	Places []Place
	// PriorTerms is the contribution of the parameters' priors and of the expected time to the
	// places' values, LogP the log probability that their evaluations complete.
	PriorTerms, LogP []float64
	// Evaluated is the number of the known places' rows in each member's posterior; the
	// rows of Places follow.
	Evaluated int
	// First is the number of the trial that the first point becomes, Picked the number of
	// points picked, Pending how many points are pending.
	First, Picked, Pending int
	// Repeats is how many completed evaluations repeat a completed point.
	Repeats int
	Chance  Chance
	// Priors are nil if no parameter has one; their density counts to the power PriorPower.
	Priors     *Priors
	PriorPower float64

	known []Place         // the incumbents' and pending places
	rows  []int           // the incumbents' rows in the data
	seen  map[string]bool // all observed points
}

// New prepares the search for the points after in.Batch. The order matters: pending points
// MUST be in the models before the candidates' posteriors are cached, and the candidates are
// drawn from the request's generator after everything that the optimiser drew to fit its
// models.
func New(ctx context.Context, in Input, o Options) *Loop {
	r, d := in.Request, in.Data
	l := &Loop{
		Input: in, Options: o, Chance: newChance(in.Feasibility, d),
		First: r.First + len(in.Batch), Pending: len(r.Pending) + len(in.Batch),
	}
	l.remember()
	for _, model := range in.Models {
		l.Others = append(l.Others, newMember(model))
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
	if l.Priors = NewPriors(r.Encoding); l.Priors != nil {
		l.PriorPower = priorPower(o.PriorWeight, r)
	}
	l.Places = candidates(r, count, l.Priors, around(r, d, l.rows[:good]), l.Taken)
	l.LogP = make([]float64, len(l.Places))
	if l.Chance.model != nil && len(l.Places) > 0 {
		l.LogP = l.Chance.Log(Rows(l.Places))
	}
	l.PriorTerms = l.priorTerms(l.Places)
	l.Exact = r.Remaining != nil && len(l.Places) == len(r.Remaining)
	l.Evaluated = len(l.known)
	l.cacheCandidates()
	l.refresh()
	return l
}

// Put adds places before the others, so that Starts takes half of its starts from them
// and from the candidates spread over the space.
func (l *Loop) Put(front []Place) {
	l.Places = append(front, l.Places...)
	l.PriorTerms = append(l.priorTerms(front), l.PriorTerms...)
	l.LogP = append(l.Chance.Log(Rows(front)), l.LogP...)
	l.cacheCandidates()
}

// Known returns the rows of the incumbents and the pending points.
func (l *Loop) Known() *mat.Dense { return Rows(l.known) }

// remember records which points were observed.
func (l *Loop) remember() {
	l.seen = make(map[string]bool, len(l.Request.Observations))
	completed := make(map[string]bool, len(l.Request.Observations))
	for _, o := range l.Request.Observations {
		key := optimizer.KeyOf(l.Request.Encoding.Encode(o.At()))
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
