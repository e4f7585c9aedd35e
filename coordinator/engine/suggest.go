package engine

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

var (
	// errUnusable says that no suggestion of an answer can be used.
	errUnusable = errors.New("the answer has no usable suggestion")
	// errOvertaken says that a point has become a trial since it was asked for, and errRepeated
	// that the optimiser was told of that trial.
	errOvertaken = errors.New("the point has become a trial")
	errRepeated  = errors.New("the point was a trial before")
)

// suggestions asks the study's optimiser for points, and makes trials of its answers.
//
// At most one request to the optimiser is in flight, and one for fallbacks; an answer counts only
// for the request that it names, and only if the space is still the one that it was made for. The
// optimiser's state is committed with the first trial of its answer: a state whose suggestions all
// were lost is lost as well, so that a next leader's optimiser repeats them.
type suggestions struct {
	shared
	life     *lifetime
	tried    *tried
	ladder   *ladder
	history  *history
	attempts *attempts
	judging  *judging

	evaluations *durations

	model    record.Model  // as committed
	ask      *Ask          // in flight
	askTime  time.Duration // how long answers take: a moving average
	askAfter time.Time     // no request before, after a failure of the optimiser

	ready  []ready // of answer, not used yet
	answer *answer

	fallback      *Ask       // the request for fallbacks in flight
	fallen        *Suggested // its answer, until the end of the step that brings it
	fallbackAfter time.Time  // no such request before, after a failure of the last one

	exhaustion exhaustion
}

// answer is an optimiser's answer that suggestions are taken from.
type answer struct {
	ask       *Ask
	at        time.Time
	state     optimizer.State
	record    *record.Ask
	committed bool // the state
}

// ready is a suggestion that has not become a trial yet.
type ready struct {
	optimizer.Suggestion
	place int
}

// forget drops the ready suggestions, and the pauses after failures, but not the requests in
// flight: their answers are awaited, whatever they are worth.
func (s *suggestions) forget() {
	s.ready, s.answer, s.fallen = nil, nil, nil
	s.askAfter, s.fallbackAfter = time.Time{}, time.Time{}
}

// end drops everything when the study ends, also the requests of this step, which nobody has yet.
func (s *suggestions) end() {
	if s.step.out.Ask != nil {
		s.step.out.Ask, s.ask = nil, nil
	}
	if s.step.out.Fallback != nil {
		s.step.out.Fallback, s.fallback = nil, nil
	}
	s.forget()
}

// forgetModel makes the optimiser start without a state: its own is of another space.
func (s *suggestions) forgetModel() {
	if s.model.Request != 0 || s.model.State != nil {
		s.model = record.Model{}
		s.step.changed.model = true
	}
	s.forget()
}

// oldest returns the oldest ledger position of the requests whose suggestions may still come;
// position if there is no older one.
func (s *suggestions) oldest(position int64) int64 {
	asks := []*Ask{s.ask, s.fallback}
	if s.answer != nil {
		asks = append(asks, s.answer.ask)
	}
	if s.fallen != nil {
		asks = append(asks, s.fallen.Ask)
	}
	for _, ask := range asks {
		if ask != nil {
			position = min(position, ask.From)
		}
	}
	return position
}

// fresh reports whether the ready suggestions use all observations.
func (s *suggestions) fresh() bool {
	return s.answer != nil && (s.spec.settings.Blind || s.answer.ask.observed == s.history.observations.all)
}

// request asks the optimiser for n suggestions, unless it is working, failing or has no other.
func (s *suggestions) request(n int) {
	if n <= 0 || s.ask != nil || s.exhaustion.over || s.step.now.Before(s.askAfter) {
		return
	}
	s.ask = s.newAsk(n)
	s.ask.State, s.ask.Forecast = s.model.State, s.history.forecasts()
	s.step.out.Ask = s.ask
}

// nextAsk returns when the optimiser may be asked again; zero while it is working.
func (s *suggestions) nextAsk() time.Time {
	if s.ask != nil {
		return time.Time{}
	}
	return s.askAfter
}

// requestFallback asks for fallbacks for n needs, unless that is being done already.
func (s *suggestions) requestFallback(n int) {
	if n == 0 || s.fallback != nil || !s.spec.settings.Fallback || s.step.now.Before(s.fallbackAfter) {
		return
	}
	s.fallback = s.newAsk(n)
	s.fallback.Fallback = true
	s.step.out.Fallback = s.fallback
}

// nextFallback returns when fallbacks may be asked for, not before a time; zero for never.
func (s *suggestions) nextFallback(at time.Time) time.Time {
	if !s.spec.settings.Fallback || s.fallback != nil {
		return time.Time{}
	}
	if at.Before(s.fallbackAfter) {
		return s.fallbackAfter
	}
	return at
}

// newAsk returns a request for n suggestions, at most maxAsk.
func (s *suggestions) newAsk(n int) *Ask {
	pending := s.pendingPoints()
	s.judging.expected(pending)
	p := s.problem(pending)
	p.Curves, p.Last = s.history.rule.curves()
	return &Ask{
		Problem: p, N: min(n, maxAsk), Request: p.First, From: s.trials.position, Space: s.spec.Space, At: s.step.now,
		observed: s.history.observations.all, completed: s.trials.counts.Completed,
	}
}

// problem is Engine.Problem with some pending points.
func (s *suggestions) problem(pending []optimizer.Pending) *optimizer.Problem {
	spec := &s.spec.Definition.Spec
	return &optimizer.Problem{
		Space:        s.spec.space.Searched(),
		Direction:    s.spec.direction(),
		Objectives:   spec.Several,
		Limits:       spec.Limits,
		MaxTrials:    s.expected(),
		Time:         s.time(),
		Cost:         s.cost(),
		Parallelism:  s.spec.parallelism(),
		Seed:         spec.Algorithm.Seed,
		First:        len(s.trials.all) + 1,
		Observations: s.history.told().snapshot(),
		Taken:        slices.Clip(s.ladder.configurations),
		Pending:      pending,
		Earlier:      s.spec.earlier,
	}
}

// expected returns the budget of trials or, where time or cost bounds them, how many there will be by how long they have taken and
// by what they have cost.
func (s *suggestions) expected() int {
	budget := &s.spec.Definition.Spec.Budget
	more, known := math.Inf(1), false
	if mean, ok := s.evaluations.mean(); ok && budget.OfTime() {
		more, known = s.life.left().Seconds()/max(mean.Seconds(), 1e-3)*float64(s.spec.parallelism()), true
	}
	if mean := s.trials.spending.mean(0); mean > 0 && budget.MaxCost > 0 {
		more, known = min(more, s.trials.unspent()/mean), true
	}
	if !known {
		return budget.Planned()
	}
	n := max(1, s.trials.counts.Ended()+len(s.trials.open)+int(min(more, mostExpected)))
	if budget.MaxTrials > 0 {
		n = min(n, budget.MaxTrials)
	}
	return n
}

// cost returns the budget in the study's cost and what is left of it; nil if the study's cost is time. Of a study with a fidelity
// it is as if there were no budget, since the optimiser sees the trials of one level.
func (s *suggestions) cost() *optimizer.Cost {
	spec := &s.spec.Definition.Spec
	switch {
	case spec.Cost == nil:
		return nil
	case spec.Budget.MaxCost == 0 || s.ladder.rungs != nil:
		return &optimizer.Cost{Metric: spec.Cost.Metric}
	default:
		return &optimizer.Cost{Metric: spec.Cost.Metric, Budget: spec.Budget.MaxCost, Left: s.trials.unspent()}
	}
}

// time returns the budget of time and what is left of it; nil for a budget of trials. The trials of a study with a
// fidelity differ in length by their levels, and the optimiser sees one of these: it is told nothing.
func (s *suggestions) time() *optimizer.Time {
	budget := &s.spec.Definition.Spec.Budget
	if !budget.OfTime() || s.ladder.rungs != nil {
		return nil
	}
	return &optimizer.Time{Budget: time.Duration(budget.MaxDuration).Seconds(), Left: s.life.left().Seconds()}
}

// pendingPoints returns the points of the open trials, as far as they are in the space.
func (s *suggestions) pendingPoints() []optimizer.Pending {
	list := make([]optimizer.Pending, 0, len(s.trials.open))
	timed := s.timed()
	for _, t := range s.trials.open {
		if !t.outside || !s.spec.on(safetyOutside) {
			p := optimizer.Pending{Trial: t.facts().number, Point: s.spec.space.Configuration(t.record().Point)}
			if timed {
				p.Seconds = running(t.record(), s.step.now).Seconds()
			}
			list = append(list, p)
		}
	}
	return list
}

// timed reports whether the optimiser is told how long pending trials have run: where it models the time of evaluations. Any other
// study would only have larger records. The levels of a fidelity differ in length, so that these say nothing of each other.
func (s *suggestions) timed() bool {
	spec := &s.spec.Definition.Spec
	weighed := false
	switch spec.Algorithm.Settings["cost"] {
	case nil, "none", "auto": // auto does only with a budget of time
	default:
		weighed = spec.Cost == nil
	}
	return s.ladder.rungs == nil && (weighed || spec.Budget.OfTime())
}
