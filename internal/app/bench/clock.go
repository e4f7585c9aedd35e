package bench

import (
	"context"
	"sort"

	"github.com/fantasia-hpo/fantasia/optimizer/session"
)

// source is what a clock drives: an optimiser and the evaluation of its points.
type source interface {
	// suggest requests up to n more points, which become the next trials. It returns
	// how many there are (fewer if the source runs out) and how long the answer took.
	suggest(ctx context.Context, n int) (count int, cost float64, err error)
	// evaluate starts a trial's evaluation and returns how long it takes.
	evaluate(ctx context.Context, trial int) (duration float64, err error)
	// tell reports trials in the order in which they ended.
	tellTrials(trials []int) error
}

// slot is a trial on the clock.
type slot struct {
	trial                  int
	made, start, end, told float64
	pending                int
}

// plan is the task of a clock.
type plan struct {
	mode            Mode
	workers, trials int
	horizon         float64
}

// schedule is the result of a clock.
type schedule struct {
	// told are the trials in the order in which the source was told about them.
	told []slot
	// cut are the trials that were running when the run ended.
	cut []slot
	end float64
}

// simulate runs the source on a virtual clock.
func simulate(ctx context.Context, p plan, s source) (*schedule, error) {
	c := &clock{plan: p, source: s}
	run := c.asynchronous
	switch p.mode {
	case Sequential:
		c.workers = 1
	case Synchronous:
		run = c.synchronous
	}
	if err := run(ctx); err != nil {
		return nil, err
	}
	return &c.schedule, nil
}

// clock is the state of a simulation.
type clock struct {
	plan
	schedule
	source
	now     float64
	started int
	// ready is when the optimiser answers its last request.
	ready float64
	// exhausted means that the optimiser has no more points.
	exhausted bool
	running   session.Agenda[slot]
	// counted is how many trials of the budget have ended.
	counted int
}

// synchronous hands out batches: all workers wait for the slowest.
func (c *clock) synchronous(ctx context.Context) error {
	for c.started < c.trials && !c.exhausted {
		wanted := min(c.workers, c.trials-c.started)
		if err := c.request(ctx, c.now, wanted); err != nil {
			return err
		}
		batch := c.running.Rest()
		if len(batch) > 0 {
			c.now = max(c.now, batch[len(batch)-1].end)
		}
		if err := c.end(batch...); err != nil {
			return err
		}
	}
	c.schedule.end = c.now
	return nil
}

// asynchronous hands out one trial whenever a worker is free and the optimiser is not
// busy, using everything told by then. A suggestion made when an evaluation ends
// includes its result.
func (c *clock) asynchronous(ctx context.Context) error {
	for {
		at := max(c.now, c.ready)
		if c.wants(at) && at < c.running.Soonest() {
			if err := c.request(ctx, at, 1); err != nil {
				return err
			}
			continue
		}
		if c.over() {
			break
		}
		done, end := c.running.Next()
		c.now = end
		if err := c.end(done); err != nil {
			return err
		}
	}
	c.cut = c.running.Rest()
	c.schedule.end = max(c.now, c.horizon)
	return nil
}

// stretch limits how many times its trials a run may start on the way to its horizon,
// which can be very far away if the law has rare long evaluations.
const stretch = 16

// wants reports whether another trial should start at a time.
func (c *clock) wants(at float64) bool {
	more := c.started < c.trials || at < c.horizon && c.started < stretch*c.trials
	return more && !c.exhausted && c.running.Len() < c.workers
}

// over reports whether no running trial counts any more: trials beyond the budget that
// end beyond the horizon do not count.
func (c *clock) over() bool {
	return c.running.Len() == 0 || c.running.Soonest() > c.horizon && c.counted == min(c.started, c.trials)
}

// request requests n suggestions at a time, and starts those that it gets.
func (c *clock) request(ctx context.Context, at float64, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	count, cost, err := c.suggest(ctx, n)
	if err != nil {
		return err
	}
	c.exhausted = count < n
	c.ready = at + cost
	for range count {
		c.started++
		duration, err := c.evaluate(ctx, c.started)
		if err != nil {
			return err
		}
		end := c.ready + duration
		c.running.Add(end, c.started, slot{
			trial: c.started, made: at, start: c.ready, end: end, pending: c.running.Len(),
		})
	}
	return nil
}

// end tells the source about trials that have ended by now.
func (c *clock) end(trials ...slot) error {
	numbers := make([]int, len(trials))
	for i, s := range trials {
		s.told = c.now
		numbers[i] = s.trial
		if s.trial <= c.trials {
			c.counted++
		}
		c.told = append(c.told, s)
	}
	return c.tellTrials(numbers)
}

// counts counts the observations that arrived between the data of a suggestion and the
// start of its evaluation (stale), and from then until the evaluation ended.
func (s *schedule) counts(of slot) (stale, arrived int) {
	// The number of trials told by a time, and before it.
	by := func(time float64) int {
		return sort.Search(len(s.told), func(i int) bool { return s.told[i].told > time })
	}
	before := func(time float64) int {
		return sort.Search(len(s.told), func(i int) bool { return s.told[i].told >= time })
	}
	stale, arrived = by(of.start)-by(of.made), before(of.end)-by(of.start)
	if of.made < of.told && of.told <= of.start { // the trial itself, which took no time
		stale--
	}
	return stale, max(0, arrived)
}

// makespan returns when the last of the first trials had ended.
func (s *schedule) makespan(trials int) float64 {
	last := 0.0
	for _, t := range s.told {
		if t.trial <= trials {
			last = max(last, t.told)
		}
	}
	return last
}

// idle returns the share of the workers' time spent without an evaluation.
func (s *schedule) idle(workers int) float64 {
	if s.end == 0 {
		return 0
	}
	busy := 0.0
	for _, trials := range [][]slot{s.told, s.cut} {
		for _, t := range trials {
			busy += min(t.end, s.end) - min(t.start, s.end)
		}
	}
	return max(0, 1-busy/(float64(workers)*s.end))
}
