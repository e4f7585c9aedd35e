package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// demand decides how many trials the study wants and what it asks of its optimiser.
//
// # When trials are made
//
// The study wants a trial for each free slot of the pool, within parallelism and
// budget. It makes trials ahead of free slots, for up to an eighth of the slots and
// at least one, in three cases:
//
//   - no slot is known yet: the first trials wait for the first worker;
//   - other studies share the pool, whose slots become free unseen;
//   - evaluations are so short that the time to commit a trial matters.
//
// If clients evaluate the study's trials, each trial that a seeker is missing takes the
// place of a free slot, and no trial is made ahead.
//
// # Where points come from
//
// At most one request is in flight. A suggestion is fresh while no observation has
// arrived since its request; that of a blind optimiser is always fresh. A free slot
// takes, in this order,
//
//  1. a fresh suggestion, at once;
//  2. after patience, a ready suggestion that is no longer fresh. Patience is the
//     study's algorithm.wait or a share of the mean evaluation time, whichever is
//     longer;
//  3. a fallback: after the study's algorithm.fallbackAfter or patience, whichever is
//     longer, or at once while the optimiser is failing.
//
// If requests take so long that a fresh suggestion would mostly come too late, the
// study requests suggestions ahead: as many as evaluations end during one request,
// and enough for slots that become free together. As a result, studies with cheap
// programs keep every slot busy with slightly stale points, unless their wait is
// longer than a request takes. Studies with expensive programs wait a moment for
// points that use every result. A new answer replaces what is left of the last one.
type demand struct {
	// needs holds, for each trial that is wanted now, since when; oldest first.
	needs []time.Time

	ask       *Ask
	askTime   time.Duration // a moving average
	askAfter  time.Time     // no request before, after a failure of the optimiser
	exhausted bool
	// unproved says that exhausted is what a search has found, without a look at each point.
	unproved bool
	// infeasible is why exhausted is set, if no feasible point was found.
	infeasible error

	ready  []ready
	answer *answer // the answer that ready comes from

	fallback      *Ask       // the request for fallbacks in flight
	fallen        *Suggested // its answer, until the end of the step that brings it
	fallbackAfter time.Time  // no such request before, after a failure of the last one

	// resumed is the ledger position of the last change of the specification. Answers
	// to older requests cannot say that the space is exhausted: points of cancelled
	// trials are free again.
	resumed int64
}

// answer is an optimiser's answer that suggestions are taken from.
type answer struct {
	ask       *Ask
	at        time.Time
	state     optimizer.State
	record    *record.Ask
	committed bool
}

// ready is a suggestion that has not become a trial yet.
type ready struct {
	optimizer.Suggestion
	place int
}

// forget drops the needs and the ready suggestions, but not the requests in flight.
func (d *demand) forget() {
	d.needs = nil
	d.forgetAnswers()
}

// forgetAnswers drops the ready suggestions, and the pauses after failures.
func (d *demand) forgetAnswers() {
	d.ready, d.answer, d.fallen = nil, nil, nil
	d.askAfter, d.fallbackAfter = time.Time{}, time.Time{}
}

// oldest returns the oldest ledger position of the requests whose suggestions may still come;
// position if there is no older one.
func (d *demand) oldest(position int64) int64 {
	asks := []*Ask{d.ask, d.fallback}
	if d.answer != nil {
		asks = append(asks, d.answer.ask)
	}
	if d.fallen != nil {
		asks = append(asks, d.fallen.Ask)
	}
	for _, ask := range asks {
		if ask != nil {
			position = min(position, ask.From)
		}
	}
	return position
}

// refill hands out pending trials again and makes the new ones that are wanted.
func (e *Engine) refill() {
	if e.life.held || !e.running() {
		return
	}
	e.seekers.count(e.trials.open)
	e.attempts.handOut()
	e.promote()
	e.demand.want(e.wanted(), e.step.now)
	e.serveFresh()
	e.request()
	e.serveLate()
	e.settle() // the space may be exhausted now, with no trial open
}

// wanted returns how many new trials to make now.
func (e *Engine) wanted() int {
	if e.demand.exhausted {
		return 0
	}
	return e.slots.openings()
}

// want adjusts the needs to n; new ones wait from now.
func (d *demand) want(n int, now time.Time) {
	if n < len(d.needs) {
		d.needs = d.needs[:n]
	}
	for len(d.needs) < n {
		d.needs = append(d.needs, now)
	}
}

// patience returns how long a slot waits for a fresh suggestion.
func (e *Engine) patience() time.Duration {
	share := patienceMax
	if mean, known := e.evaluations.mean(); known {
		share = min(patienceMax, time.Duration(patienceShare*float64(mean)))
	}
	if e.spec.settings.Blind {
		return share
	}
	return max(share, duration(e.spec.Definition.Spec.Algorithm.Wait))
}

// fallbackAfter returns how long a slot waits before it takes a fallback.
func (e *Engine) fallbackAfter() time.Duration {
	return max(e.patience(), fallbackMin, duration(e.spec.Definition.Spec.Algorithm.FallbackAfter))
}

// duration returns an optional duration, 0 if it is unset.
func duration(d *study.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}

// fresh reports whether the ready suggestions use all observations.
func (e *Engine) fresh() bool {
	a := e.demand.answer
	return a != nil && (e.spec.settings.Blind || a.ask.observed == e.history.observations.all)
}

// serveFresh serves needs with fresh suggestions.
func (e *Engine) serveFresh() {
	for len(e.demand.needs) > 0 && e.fresh() && e.createReady() {
		e.demand.needs = e.demand.needs[1:]
	}
}

// serveLate serves the needs that have waited long enough.
func (e *Engine) serveLate() {
	d := &e.demand
	failing := d.ask == nil // otherwise request would have sent a request
	patience := e.patience()
	for len(d.needs) > 0 && (failing || e.waited(0) >= patience) && e.createReady() {
		d.needs = d.needs[1:]
	}
	n, after := 0, e.fallbackAfter()
	for n < len(d.needs) && (failing || e.waited(n) >= after) {
		n++
	}
	if d.fallen != nil {
		made := min(e.fallBack(n), len(d.needs))
		d.needs, n = d.needs[made:], max(0, n-made)
	}
	e.requestFallback(n)
}

// requestFallback asks for fallbacks for n needs, unless that is being done already.
func (e *Engine) requestFallback(n int) {
	d := &e.demand
	if n == 0 || d.fallback != nil || !e.spec.settings.Fallback || e.step.now.Before(d.fallbackAfter) {
		return
	}
	d.fallback = e.newAsk(n)
	d.fallback.Fallback = true
	e.step.out.Fallback = d.fallback
}

// newAsk returns a request for n suggestions, at most maxAsk.
func (e *Engine) newAsk(n int) *Ask {
	p := e.Problem()
	return &Ask{
		Problem: p, N: min(n, maxAsk), Request: p.First, From: e.trials.position, Space: e.spec.Space, At: e.step.now,
		observed: e.history.observations.all,
	}
}

// waited returns how long a need has waited.
func (e *Engine) waited(i int) time.Duration { return e.step.now.Sub(e.demand.needs[i]) }

// request asks the optimiser for the needed suggestions and for those to keep ready,
// unless the optimiser is working, failing or exhausted.
func (e *Engine) request() {
	d := &e.demand
	if d.ask != nil || d.exhausted || e.step.now.Before(d.askAfter) {
		return
	}
	n := len(d.needs)
	if !e.fresh() || len(d.ready) == 0 {
		n += e.prefetch()
	}
	n = min(n, e.trials.remaining())
	if n <= 0 {
		return
	}
	d.ask = e.newAsk(n)
	d.ask.State = e.model.State
	e.step.out.Ask = d.ask
}

// prefetch returns how many suggestions to keep ready. It returns 0 if a request takes
// less than half of the patience. Otherwise it returns as many as the study uses
// during one request, and at least enough for slots that become free together.
func (e *Engine) prefetch() int {
	mean, known := e.evaluations.mean()
	if !known || 2*e.demand.askTime < e.patience() {
		return 0
	}
	busy := time.Duration(e.trials.counts.Running)
	if mean <= 0 || busy*e.demand.askTime >= maxPrefetch*mean {
		return maxPrefetch
	}
	return max(min(e.spec.parallelism(), minPrefetch), 1+int(busy*e.demand.askTime/mean))
}

// wake returns when the next Tick would do something; zero for never.
func (e *Engine) wake() time.Time {
	if !e.running() {
		return time.Time{}
	}
	if e.life.held {
		return e.step.now
	}
	wake := earliest(earliest(e.life.deadline(), e.life.countAgain()), e.outbox.next())
	d := &e.demand
	if len(d.needs) == 0 {
		return wake
	}
	if d.ask == nil {
		wake = earliest(wake, d.askAfter)
	}
	since, patience := d.needs[0], e.patience()
	if len(d.ready) > 0 {
		wake = earliest(wake, since.Add(patience))
	}
	if e.spec.settings.Fallback && d.fallback == nil {
		at := since.Add(e.fallbackAfter())
		if at.Before(d.fallbackAfter) {
			at = d.fallbackAfter
		}
		wake = earliest(wake, at)
	}
	return wake
}

// earliest returns the earlier of two times; zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
