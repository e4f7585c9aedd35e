package duration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// plenty is how many times as long as the longest evaluation so far the time must be that is left, for nobody to look
	// whether evaluations end in time.
	plenty = 20
	// quickTries is how many directions are tried from a point that takes too long, for one that does not.
	quickTries = 200
)

// strides are the shares of the way to a random point that are tried.
var strides = []float64{0.25, 0.5, 1}

// InTime has an optimiser suggest points. If the problem has a budget of cost that may end soon, each suggestion gets the median of the
// model of costs: see optimizer.Suggestion. If it has a budget of time, InTime leaves only suggestions that are more
// likely than not to end in what is left of it: the median of the model of times decides, since a slot that
// begins nothing more is of no use to the study. A suggestion that takes too long is replaced by a near point that
// does not. The error is optimizer.ErrNoTime if there is none.
// While too few evaluations with a known time have ended, all suggestions pass. InTime is as pure as the optimiser.
func InTime(
	ctx context.Context, o optimizer.Optimizer, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand,
) ([]optimizer.Suggestion, optimizer.State, error) {
	list, next, err := o.Suggest(ctx, p, state, n, rng)
	if err != nil || p.Time == nil && p.Cost == nil {
		return list, next, err //nolint:wrapcheck // as the optimiser's
	}
	told := p.Observations
	if _, blind := o.(optimizer.Blind); blind { // its problem may have no others
		told = told[max(0, len(told)-optimizer.BlindObservations):]
	}
	if p.Time != nil {
		if list, next, err = inTime(ctx, p, told, list, state, next, rng); err != nil {
			return nil, next, err
		}
	}
	return priced(ctx, p, told, list), next, nil
}

// priced returns the suggestions with what they are expected to cost. That is not known while too few evaluations with a known cost
// have ended, and does not matter while much of the budget is left.
func priced(ctx context.Context, p *optimizer.Problem, told []optimizer.Observation, list []optimizer.Suggestion) []optimizer.Suggestion {
	if p.Cost == nil || p.Cost.Budget == 0 {
		return list
	}
	var largest float64
	for i := range told {
		largest = max(largest, told[i].Cost)
	}
	if p.Cost.Left > plenty*largest*float64(max(1, p.Parallelism)) {
		return list
	}
	of := *p
	of.Observations = told
	costs, err := (*Medians)(nil).OfCosts(ctx, optimizer.NewEncoding(p.Space), &of)
	if err != nil {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Cost = costs.At(list[i].Point)[0].Median()
	}
	return list
}

// inTime returns the suggestions that are expected to end in time, and quicker ones in the place of others.
func inTime(
	ctx context.Context, p *optimizer.Problem, told []optimizer.Observation, list []optimizer.Suggestion, state, next optimizer.State,
	rng *rand.Rand,
) ([]optimizer.Suggestion, optimizer.State, error) {
	var longest float64
	for i := range told {
		longest = max(longest, told[i].Seconds)
	}
	if p.Time.Left > plenty*longest {
		return list, next, nil
	}
	of := *p
	of.Observations = told
	times, err := (*Medians)(nil).Of(ctx, optimizer.NewEncoding(p.Space), &of)
	if err != nil { // too few have ended, or the request must be answered at once
		return list, next, nil //nolint:nilerr // what takes an unknown time passes
	}
	kept := make([]optimizer.Suggestion, 0, len(list))
	for _, s := range list {
		s.Seconds = times.At(s.Point)[0].Median()
		if s.Seconds > p.Time.Left {
			if s, err = quicker(ctx, times, p, s, kept, rng); errors.Is(err, optimizer.ErrNoTime) {
				continue
			} else if err != nil {
				return nil, state, err
			}
		}
		kept = append(kept, s)
	}
	if len(kept) == 0 && len(list) > 0 {
		return nil, state, optimizer.ErrNoTime
	}
	return kept, next, nil
}

// quicker returns a suggestion near one that takes too long, which does not. The error is optimizer.ErrNoTime if none is found, or
// ctx's.
func quicker(
	ctx context.Context, times *Model, p *optimizer.Problem, slow optimizer.Suggestion, before []optimizer.Suggestion, rng *rand.Rand,
) (optimizer.Suggestion, error) {
	problem := *p
	problem.First += len(before)
	problem.Pending = append([]optimizer.Pending{}, p.Pending...)
	for i, s := range before {
		problem.Pending = append(problem.Pending, optimizer.Pending{Trial: p.First + i, Point: s.Point})
	}
	found, _, err := optimizer.GuardBlind(&near{times, slow}).Suggest(ctx, &problem, nil, 1, rng)
	switch {
	case ctx.Err() != nil:
		return optimizer.Suggestion{}, context.Cause(ctx)
	case err != nil || len(found) == 0:
		return optimizer.Suggestion{}, optimizer.ErrNoTime
	}
	s := found[0]
	if s.Seconds = times.At(s.Point)[0].Median(); s.Seconds > p.Time.Left { // the guard has another one
		return optimizer.Suggestion{}, optimizer.ErrNoTime
	}
	return s, nil
}

// near is the algorithm that finds a quicker point near a slow one.
type near struct {
	times *Model
	slow  optimizer.Suggestion
}

// Propose implements optimizer.Proposer.
func (q *near) Propose(_ context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	from := r.Encoding.Encode(q.slow.Point)
	var best study.Point
	var seconds float64
	least := math.Inf(1)
	for _, c := range q.candidates(r, from) {
		if far := floats.Distance(from, r.Encoding.Encode(c), 2); far < least {
			if took := q.times.At(c)[0].Median(); took <= r.Time.Left {
				best, least, seconds = c, far, took
			}
		}
	}
	if best == nil {
		return nil, r.State, optimizer.ErrNoTime
	}
	s := optimizer.Suggestion{Point: best, Source: q.slow.Source}
	if s.Source == optimizer.SourceInitial {
		s.Source = optimizer.SourceRandom
	}
	s.Reasons.Pending = len(r.Pending)
	s.Reasons.Note = fmt.Sprintf("near a point that is expected to take %.3g s, of which %.3g s are left: this one is expected to take %.3g s",
		q.slow.Seconds, r.Time.Left, seconds)
	return []optimizer.Suggestion{s}, r.State, nil
}

// candidates returns the points that may be suggested: all of a small space, or some on the way to random ones.
func (q *near) candidates(r *optimizer.Request, from []float64) []study.Point {
	if r.Remaining != nil {
		return r.Remaining
	}
	var list []study.Point
	x := make([]float64, len(from))
	for range quickTries {
		end, err := r.Sampler.Draw(optimizer.Uniform(r.Rand))
		if err != nil {
			break
		}
		to := r.Encoding.Encode(end)
		for _, stride := range strides {
			for i := range x {
				x[i] = from[i] + stride*(to[i]-from[i])
			}
			if p := r.Encoding.Decode(x); r.Space.Feasible(p) && !r.Sampler.Taken(p) {
				list = append(list, p)
			}
		}
	}
	return list
}
