package diagnosis

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// leastEnded is how many trials must have ended for their times to say what is left: a model of them, if they are enough for one,
	// otherwise their mean.
	leastEnded = 3
	// More trials than mostForecast take long to read, and their mean tells enough.
	mostForecast = 3000
)

// Course is how far a study has come that runs.
type Course struct {
	// Ended is how many trials have ended, of MaxTrials; that is 0 if only time or cost bounds the study.
	Ended, MaxTrials int
	// MaxDuration is the budget of time, 0 for none.
	MaxDuration time.Duration
	// Elapsed is how long the study had run at the moment At; without a moment, it is how long it has run.
	Elapsed time.Duration
	At      time.Time
	// Ends is when the study ends by Ends; zero if that is not known.
	Ends time.Time
	// Cost is what the trials have cost; nil if the study has no cost but time.
	Cost *view.Cost
}

// mostLeft bounds the time left by what trials cost, in units of the time so far.
const mostLeft = 1e3

// Foreseeable reports whether Ends can tell when the study ends.
func (c *Course) Foreseeable() bool {
	return c.MaxTrials > 0 && c.Ended >= leastEnded && c.Ended <= mostForecast
}

// Left estimates how long the study still takes at a moment, which is not before At: by Ends or, without it, by the mean time
// between the ends of two trials so far. ok is false while too few have ended.
func (c *Course) Left(now time.Time) (left time.Duration, ok bool) {
	if c.Ended < leastEnded || c.Elapsed <= 0 {
		return 0, false
	}
	var since time.Duration
	if !c.At.IsZero() {
		since = max(0, now.Sub(c.At))
	}
	bound := func(by time.Duration) {
		if !ok || by < left {
			left, ok = by, true
		}
	}
	switch {
	case c.MaxTrials > 0 && !c.Ends.IsZero():
		bound(c.Ends.Sub(now))
	case c.MaxTrials > 0:
		bound(time.Duration(float64(c.Elapsed)/float64(c.Ended)*float64(c.MaxTrials-c.Ended)) - since)
	}
	if c.MaxDuration > 0 {
		bound(c.MaxDuration - c.Elapsed - since)
	}
	if paid := c.Cost; paid != nil && paid.Max != nil && paid.Spent > 0 {
		bound(time.Duration(float64(c.Elapsed)*min(max(*paid.Max/paid.Spent-1, 0), mostLeft)) - since)
	}
	return max(left, 0), ok
}

// Ends returns when a study ends that runs to the end of its budget of trials, by the models of NewPace at a moment; zero if they
// tell nothing, or if ctx ends. slots is how many trials run at once.
func Ends(ctx context.Context, s *study.Study, trials view.Trials, slots int, now time.Time) time.Time {
	pace, err := NewPace(ctx, s, trials, now)
	if err != nil {
		return time.Time{}
	}
	return now.Add(pace.Left(trials, s.Spec.Budget.MaxTrials, slots, now))
}
