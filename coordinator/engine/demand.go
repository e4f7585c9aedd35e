package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// demand is what the study wants of its optimiser, and what it has of it.
//
// # When trials are made
//
// A trial is wanted for each free slot of the pool, within parallelism and
// budget; and ahead of free slots, at most an eighth of the slots and at least
// one, where no slot is known yet (the first trials wait for the first worker),
// where others share the pool (their slots come free unseen), or where
// evaluations are so short that the time to commit a trial counts.
//
// # Where points come from
//
// At most one request is under way. A suggestion is fresh while no observation
// arrived after the problem that it was made from; that of a blind optimiser always
// is. A free slot takes, in this order,
//
//  1. a fresh suggestion, at once;
//  2. after patience, a ready one that is no longer fresh: a slot idles for as long
//     as a better point is worth, which is the study's algorithm.wait or, where that
//     is longer, a share of the mean evaluation time;
//  3. after the study's algorithm.fallbackAfter, or patience where that is longer,
//     or at once while the optimiser is failing, a fallback.
//
// Where requests take so long that a fresh suggestion would mostly come too
// late, suggestions are asked for ahead: as many as evaluations end during one
// request, and enough for slots that come free together. So cheap programs keep
// every slot busy with points that are a little stale where their study's wait is
// shorter than a request takes, and expensive ones wait a moment for points that know
// everything. An answer replaces whatever was left
// of the one before.
type demand struct {
	slots, free int
	// needs says, for each trial that is wanted now, since when, oldest first.
	needs []time.Time

	ask       *Ask
	askTime   time.Duration // a moving average
	askAfter  time.Time     // no request before, the optimiser having failed
	exhausted bool

	ready  []ready
	answer *answer // that ready is of

	fallbackAfter time.Time // no fallback before, the last one having failed
}

// answer is an optimiser's answer that suggestions are taken from.
type answer struct {
	ask       *Ask
	at        time.Time
	state     optimizer.State
	committed bool
}

// ready is a suggestion that no trial was made of yet.
type ready struct {
	optimizer.Suggestion
	place int
}

// forget drops what was wanted and what was ready; a request under way stays so.
func (d *demand) forget() {
	d.needs, d.ready, d.answer = nil, nil, nil
	d.askAfter, d.fallbackAfter = time.Time{}, time.Time{}
}

// refill hands pending trials out again and makes the new ones that are wanted.
func (e *Engine) refill() {
	if e.held || !e.running() {
		return
	}
	e.handOut()
	e.want(e.wanted())
	e.takeFresh()
	e.request()
	e.takeLate()
	e.settle() // the last point may be gone, and nothing open
}

// handOut opens the next attempt of pending trials, the longest waiting first.
func (e *Engine) handOut() {
	for len(e.pending) > 0 && e.room() > 0 {
		t := e.pending[0]
		e.pending = e.pending[1:]
		if t.rec.State == study.TrialPending {
			e.openAttempt(t)
		}
	}
}

// room is how many more attempts may be queued now.
func (e *Engine) room() int {
	d := &e.demand
	busy := e.status.Counts.Running
	room := min(d.free, max(0, d.slots-busy)) - e.status.Counts.Queued
	mean, known := e.evaluations.mean()
	shared := d.slots > d.free+busy
	if d.slots == 0 || shared || known && mean < lookAheadBelow {
		room += max(1, d.slots/8)
	}
	return room
}

// wanted is how many new trials are to be made now.
func (e *Engine) wanted() int {
	if e.demand.exhausted {
		return 0
	}
	n := e.room()
	if e.on(guardParallel) {
		n = min(n, e.parallelism()-len(e.open))
	}
	return max(0, min(n, e.remaining()))
}

// parallelism is the bound on open trials, at least 1.
func (e *Engine) parallelism() int { return max(1, e.spec.Definition.Spec.Parallelism) }

// remaining is how many more trials the budget lets the study make.
func (e *Engine) remaining() int {
	if !e.on(guardBudget) {
		return 1
	}
	return e.spec.Definition.Spec.Budget.MaxTrials - e.status.Counts.Ended() - len(e.open)
}

// want keeps one need for each wanted trial: new ones wait from now.
func (e *Engine) want(n int) {
	d := &e.demand
	if n < len(d.needs) {
		d.needs = d.needs[:n]
	}
	for len(d.needs) < n {
		d.needs = append(d.needs, e.now)
	}
}

// patience is how long a slot waits for a fresh suggestion.
func (e *Engine) patience() time.Duration {
	share := patienceMax
	if mean, known := e.evaluations.mean(); known {
		share = min(patienceMax, time.Duration(patienceShare*float64(mean)))
	}
	if e.settings.Blind {
		return share
	}
	return max(share, duration(e.spec.Definition.Spec.Algorithm.Wait))
}

// fallbackAfter is how long a slot waits before it takes a fallback.
func (e *Engine) fallbackAfter() time.Duration {
	return max(e.patience(), fallbackMin, duration(e.spec.Definition.Spec.Algorithm.FallbackAfter))
}

// duration is a duration that a study may leave out.
func duration(d *study.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}

// fresh reports whether the ready suggestions know all that they could.
func (e *Engine) fresh() bool {
	a := e.demand.answer
	return a != nil && (e.settings.Blind || len(a.ask.Problem.Observations) == len(e.observations))
}

// takeFresh serves needs with fresh suggestions.
func (e *Engine) takeFresh() {
	for len(e.demand.needs) > 0 && e.fresh() && e.takeReady() {
		e.demand.needs = e.demand.needs[1:]
	}
}

// takeLate serves the needs that have waited long enough.
func (e *Engine) takeLate() {
	d := &e.demand
	failing := d.ask == nil // request would have asked, had the optimiser not failed
	patience := e.patience()
	for len(d.needs) > 0 && (failing || e.waited(0) >= patience) && e.takeReady() {
		d.needs = d.needs[1:]
	}
	n, after := 0, e.fallbackAfter()
	for n < len(d.needs) && (failing || e.waited(n) >= after) {
		n++
	}
	if n > 0 && e.settings.Fallback != nil && !e.now.Before(d.fallbackAfter) {
		made := e.fallback(n)
		d.needs = d.needs[min(made, len(d.needs)):]
	}
}

// waited is how long a need has waited.
func (e *Engine) waited(i int) time.Duration { return e.now.Sub(e.demand.needs[i]) }

// request asks the optimiser, unless it is at work, failing or exhausted, for
// what is needed and for what is to be kept ready.
func (e *Engine) request() {
	d := &e.demand
	if d.ask != nil || d.exhausted || e.now.Before(d.askAfter) {
		return
	}
	n := len(d.needs)
	if !e.fresh() || len(d.ready) == 0 {
		n += e.prefetch()
	}
	n = min(n, e.remaining(), maxAsk)
	if n <= 0 {
		return
	}
	p := e.Problem()
	d.ask = &Ask{Problem: p, State: e.model.State, N: n, Request: p.First, From: e.status.Position, At: e.now}
	e.out.Ask = d.ask
}

// prefetch is how many suggestions to keep ready: none where a fresh one comes
// within half of the patience. Otherwise as many as are used up meanwhile, at
// most, and no fewer than a burst of slots that come free together may want.
func (e *Engine) prefetch() int {
	mean, known := e.evaluations.mean()
	if !known || 2*e.demand.askTime < e.patience() {
		return 0
	}
	busy := time.Duration(e.status.Counts.Running)
	if mean <= 0 || busy*e.demand.askTime >= maxPrefetch*mean {
		return maxPrefetch
	}
	return max(min(e.parallelism(), minPrefetch), 1+int(busy*e.demand.askTime/mean))
}

// wake is when the next Tick would do something; zero for never.
func (e *Engine) wake() time.Time {
	if !e.running() {
		return time.Time{}
	}
	if e.held {
		return e.now
	}
	wake := earliest(e.deadline(), e.nextDue())
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
	if e.settings.Fallback != nil {
		at := since.Add(e.fallbackAfter())
		if at.Before(d.fallbackAfter) {
			at = d.fallbackAfter
		}
		wake = earliest(wake, at)
	}
	return wake
}

// earliest is the earlier of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
