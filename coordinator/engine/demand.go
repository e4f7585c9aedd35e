package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/study"
)

// demand decides how many trials the study wants, and for how long each waits for a better point.
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
//
// needs has one entry for each trial that is wanted now and has no point yet, with the time since
// when it waits; oldest first. It never has more than slots, parallelism and budget allow.
type demand struct {
	shared
	slots       *slots
	suggestions *suggestions
	evaluations *durations

	needs []time.Time
}

// serve makes the trials that are wanted, as far as there are points for them, and asks for others.
// The order matters. A fresh suggestion is used before more are asked for, since the request then
// tells the optimiser that its point is pending. And it is asked before older suggestions and
// fallbacks are used, which are only for when it is working or failing.
func (d *demand) serve() {
	d.want()
	for len(d.needs) > 0 && d.suggestions.fresh() && d.suggestions.createReady() {
		d.needs = d.needs[1:]
	}
	d.request()
	d.serveLate()
}

// want adjusts the needs to the trials that can be made now; new ones wait from now.
func (d *demand) want() {
	n := 0
	if !d.suggestions.exhaustion.over {
		n = d.slots.openings()
	}
	if n < len(d.needs) {
		d.needs = d.needs[:n]
	}
	for len(d.needs) < n {
		d.needs = append(d.needs, d.step.now)
	}
}

// request asks for as many suggestions as are needed, and for those to keep ready unless some fresh
// ones are. What users have enqueued is handed out before these.
func (d *demand) request() {
	n := len(d.needs)
	if !d.suggestions.fresh() || len(d.suggestions.ready) == 0 {
		n += max(0, d.prefetch()-len(d.trials.wishes))
	}
	d.suggestions.request(min(n, d.trials.remaining()))
}

// prefetch returns how many suggestions to keep ready. It returns 0 if a request takes
// less than half of the patience. Otherwise it returns as many as the study uses
// during one request, and at least enough for slots that become free together.
func (d *demand) prefetch() int {
	mean, known := d.evaluations.mean()
	took := d.suggestions.askTime
	if !known || 2*took < d.patience() {
		return 0
	}
	busy := time.Duration(d.trials.counts.Running)
	if mean <= 0 || busy*took >= maxPrefetch*mean {
		return maxPrefetch
	}
	return max(min(d.spec.parallelism(), minPrefetch), 1+int(busy*took/mean))
}

// serveLate serves the needs that have waited long enough: with suggestions that are no longer
// fresh, then with fallbacks. While the optimiser is failing they do not wait: nothing better is
// coming.
func (d *demand) serveLate() {
	failing := d.suggestions.ask == nil // otherwise request would have sent a request
	patience := d.patience()
	for len(d.needs) > 0 && (failing || d.waited(0) >= patience) && d.suggestions.createReady() {
		d.needs = d.needs[1:]
	}
	n, after := 0, d.fallbackAfter()
	for n < len(d.needs) && (failing || d.waited(n) >= after) {
		n++
	}
	made, exhausted := d.suggestions.fallBack(n)
	if exhausted {
		made = len(d.needs)
	}
	d.needs = d.needs[min(made, len(d.needs)):]
	d.suggestions.requestFallback(max(0, n-made))
}

func (d *demand) waited(i int) time.Duration { return d.step.now.Sub(d.needs[i]) }

// patience returns how long a slot waits for a fresh suggestion: a share of how long it will be
// busy, or what the study file says. A blind optimiser is not waited for, since its suggestions are
// always fresh.
func (d *demand) patience() time.Duration {
	share := patienceMax
	if mean, known := d.evaluations.mean(); known {
		share = min(patienceMax, time.Duration(patienceShare*float64(mean)))
	}
	if d.spec.settings.Blind {
		return share
	}
	return max(share, duration(d.spec.Definition.Spec.Algorithm.Wait))
}

// fallbackAfter returns how long a slot waits before it takes a fallback. It is never less than
// patience, or a fallback would come before an older suggestion of the optimiser.
func (d *demand) fallbackAfter() time.Duration {
	return max(d.patience(), fallbackMin, duration(d.spec.Definition.Spec.Algorithm.FallbackAfter))
}

// end forgets the needs: the study has ended.
func (d *demand) end() { d.needs = nil }

// wake returns when a need has waited long enough for something; zero for never.
func (d *demand) wake() time.Time {
	if len(d.needs) == 0 {
		return time.Time{}
	}
	since := d.needs[0]
	wake := d.suggestions.nextAsk()
	if len(d.suggestions.ready) > 0 {
		wake = earliest(wake, since.Add(d.patience()))
	}
	return earliest(wake, d.suggestions.nextFallback(since.Add(d.fallbackAfter())))
}

// duration returns an optional duration, 0 if it is unset.
func duration(d *study.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}

// earliest returns the earlier of two times; zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
