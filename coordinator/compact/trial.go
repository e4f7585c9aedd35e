package compact

import (
	"math"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// trial codes all fields of a record but its number.
func (c *coder) trial(t *record.Trial) {
	shared(c, &t.State)
	shared(c, &t.Source)
	integer(c, &t.Created, 2*int64(t.Number)) // the ledger's position grows by two for each trial
	integer(c, &t.Ended, t.Created)
	integer(c, &t.From, t.Created)
	integer(c, &t.Request, t.Number)
	integer(c, &t.Place, 0)
	integer(c, &t.Staleness, 0)
	integer(c, &t.Reasons.Pending, 0)
	list(c, (*[]float64)(&t.Values), c.float)
	c.point(&t.Point)
	c.ask(&t.Ask)

	r := &t.Reasons
	has := c.flags(t.Metrics != nil, r.Note != "", t.TraceID != "", t.SpanID != "",
		r.Mean != nil, r.SD != nil, r.Acquisition != nil, t.Checkpoint != "",
		t.Rung != 0, t.Predecessor != 0, t.Stopped != nil, t.Cancelled != "",
		t.Labels != nil, t.Note != "", t.RequestID != "")
	if has.next() {
		dictionary(c, &t.Metrics, func(p *float64) { c.metric(p, t.Values) })
	}
	if has.next() {
		shared(c, &r.Note)
	}
	if has.next() {
		c.id(&t.TraceID)
	}
	if has.next() {
		c.id(&t.SpanID)
	}
	if has.next() {
		c.optional(&r.Mean)
	}
	if has.next() {
		c.optional(&r.SD)
	}
	if has.next() {
		dictionary(c, &r.Acquisition, c.float)
	}
	if has.next() {
		c.text(&t.Checkpoint)
	}
	if has.next() {
		integer(c, &t.Rung, 0)
	}
	if has.next() {
		integer(c, &t.Predecessor, t.Number)
	}
	if has.next() {
		c.stopped(&t.Stopped)
	}
	if has.next() {
		c.text(&t.Cancelled)
	}
	if has.next() {
		dictionary(c, &t.Labels, func(p *string) { shared(c, p) })
	}
	if has.next() {
		c.text(&t.Note)
	}
	if has.next() {
		c.id(&t.RequestID)
	}
	c.times(t)
}

// ask codes what a request said.
func (c *coder) ask(p **record.Ask) {
	place := uint64(0) // 0 for none, 1 if it is written out
	if !c.reading && *p != nil {
		place = 1
		if i, ok := c.asks.place(**p); ok {
			place = uint64(i) + 2
		}
	}
	if place = c.unsigned(place); place == 0 {
		return
	}
	if c.reading {
		*p = new(record.Ask)
	}
	a := *p
	if place > 1 {
		if c.reading {
			*a = c.asks.values[place-2]
		}
		return
	}
	integer(c, &a.N, 0)
	integer(c, &a.MaxTrials, 0)
	integer(c, &a.Parallelism, 0)
	integer(c, &a.Space, 0)
	set := c.flags(a.Fallback, a.Cut)
	if fallback, cut := set.next(), set.next(); c.reading { // others share what is written
		a.Fallback, a.Cut = fallback, cut
	}
}

// metric codes a metric, which often is the trial's value.
func (c *coder) metric(p *float64, values study.Values) {
	same := c.flags(!c.reading && len(values) > 0 && math.Float64bits(*p) == math.Float64bits(values[0]))
	if !same.next() {
		c.float(p)
	} else if c.reading {
		*p = values[0]
	}
}

// stopped codes a decision to stop a trial early.
func (c *coder) stopped(p **record.Stopped) {
	if c.reading {
		*p = &record.Stopped{}
	}
	s := *p
	integer(c, &s.Attempt, 0)
	integer(c, &s.Step, 0)
	list(c, (*[]float64)(&s.Values), c.float)
	c.text(&s.Reason)
	c.time(&s.At, time.Time{})
}

// times codes the times of a trial, and its attempts between them: the trial's times are
// mostly those of its last attempt.
func (c *coder) times(t *record.Trial) {
	at := &t.Times
	c.time(&at.Asked, time.Time{})
	c.time(&at.Suggested, at.Asked)
	c.time(&at.Created, at.Suggested)
	before, number := at.Created, 0
	list(c, &t.Attempts, func(a *record.Attempt) {
		number++
		c.attempt(a, number, before)
		before = a.Ended
	})
	var last record.Attempt
	if a := t.Last(); a != nil {
		last = *a
	}
	c.time(&at.Claimed, last.Claimed)
	c.time(&at.Started, last.Started)
	c.time(&at.Ended, last.Ended)
	c.time(&at.Folded, at.Ended)
}

// attempt codes the attempt that should have a number, and was opened soon after a time.
func (c *coder) attempt(a *record.Attempt, number int, before time.Time) {
	shared(c, &a.State)
	has := c.flags(a.Outcome != "", a.Worker != "", a.Nonce != "", a.Logs != "", a.Failure != nil, a.Number != number)
	if has.next() {
		shared(c, &a.Outcome)
	}
	if has.next() {
		shared(c, &a.Worker)
	}
	if has.next() {
		c.id(&a.Nonce)
	}
	if has.next() {
		c.text(&a.Logs)
	}
	if has.next() {
		c.failure(&a.Failure)
	}
	if c.reading {
		a.Number = number
	}
	if has.next() {
		integer(c, &a.Number, 0)
	}
	c.time(&a.Opened, before)
	c.time(&a.Committed, a.Opened)
	c.time(&a.Published, a.Committed)
	c.time(&a.Claimed, a.Published)
	c.time(&a.Started, a.Claimed)
	c.time(&a.Ended, a.Started)
}

// failure codes why an attempt failed.
func (c *coder) failure(p **messaging.Failure) {
	if c.reading {
		*p = &messaging.Failure{}
	}
	f := *p
	shared(c, &f.Reason)
	has := c.flags(f.ExitCode != nil, f.Signal != "", f.Message != "")
	if has.next() {
		if c.reading {
			f.ExitCode = new(int)
		}
		integer(c, f.ExitCode, 0)
	}
	if has.next() {
		shared(c, &f.Signal)
	}
	if has.next() {
		c.text(&f.Message)
	}
}
