package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// ErrNoPace says that a study's trials do not tell how long others take.
var ErrNoPace = errors.New("the time of trials is not known")

// latest is how many of the trials that began last say what the next ones take, at least; otherwise it is half of all. An
// optimiser moves to faster or slower ones.
const latest = 16

// Pace says how long the trials of a study take, by models of their time. It is immutable and safe for concurrent use.
type Pace struct {
	space *space.Space
	seed  uint64
	// whole is of the time of trials that complete, occupied of that for which trials have a worker, however they end.
	whole, occupied *duration.Model
	next            []study.Point // the latest trials
}

// NewPace fits the models to the trials whose program has started, at a moment. A fidelity counts as a parameter: a trial takes as long
// as others of its level. The error wraps ErrNoPace if too few have ended.
func NewPace(ctx context.Context, s *study.Study, trials view.Trials, now time.Time) (*Pace, error) {
	in, err := celspace.Of(s)
	if err != nil {
		return nil, err
	}
	p := &Pace{space: in, seed: s.Spec.Algorithm.Seed}
	list, stopped := p.read(trials, now)
	encoding, earlier := optimizer.NewEncoding(in), optimizer.EarlierOf(&s.Spec)
	if p.occupied, err = duration.Fit(ctx, encoding, observations(list, stopped, false), earlier, p.seed); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPace, err)
	}
	p.whole = p.occupied
	if slices.Contains(stopped, true) {
		p.whole, err = duration.Fit(ctx, encoding, observations(list, stopped, true), earlier, p.seed)
		if errors.Is(err, duration.ErrTooFew) {
			p.whole = nil
		} else if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoPace, err)
		}
	}
	return p, nil
}

// read returns what is known of the trials' times, in the order in which they ended, and which of them ended without completing. It
// sets next.
func (p *Pace) read(trials view.Trials, now time.Time) (list []duration.Observation, stopped []bool) {
	type timed struct {
		duration.Observation
		start, end time.Time
		stopped    bool
	}
	var all []timed
	for _, t := range view.Each(trials) {
		one := timed{start: t.Times.Started, end: t.Times.Ended}
		if one.stopped = t.State.Terminal() && t.State != study.TrialCompleted; t.State == study.TrialRunning {
			one.Censored, one.end = true, now
		} else if !t.State.Terminal() || t.State == study.TrialCancelled {
			continue
		}
		point, err := p.space.Normalize(t.Parameters)
		if one.start.IsZero() || one.end.Before(one.start) || err != nil { // nothing has started, or the space was edited
			continue
		}
		one.Point, one.Seconds = point, one.end.Sub(one.start).Seconds()
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b timed) int { return a.start.Compare(b.start) })
	for _, one := range all[len(all)-max(min(latest, len(all)), len(all)/2):] {
		p.next = append(p.next, one.Point)
	}
	slices.SortStableFunc(all, func(a, b timed) int { return a.end.Compare(b.end) })
	for _, one := range all {
		list, stopped = append(list, one.Observation), append(stopped, one.stopped)
	}
	return list, stopped
}

// observations returns the list; with whole, those that were stopped would have taken longer.
func observations(list []duration.Observation, stopped []bool, whole bool) []duration.Observation {
	if !whole {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Censored = list[i].Censored || stopped[i]
	}
	return list
}

// Takes returns what is expected of a trial's time if it completes, nil if that is not known. Of a trial that runs, it is that of
// trials that have run for as long.
func (p *Pace) Takes(t *view.Trial, now time.Time) *view.Takes {
	point, err := p.space.Normalize(t.Parameters)
	if err != nil || p.whole == nil {
		return nil
	}
	var ran float64
	if t.State == study.TrialRunning {
		ran = sinceStart(t, now)
	}
	e := p.whole.At(point)[0]
	return &view.Takes{Low: e.Quantile(0.05, ran), Median: e.Quantile(0.5, ran), High: e.Quantile(0.95, ran)}
}

// Left returns how long the study still takes if it runs to the end of a budget of trials, of which slots run at once. Each of the
// trials counts once, by its state there: one that has ended since the budget's rest was read is no trial that will still begin.
func (p *Pace) Left(trials view.Trials, budget, slots int, now time.Time) time.Duration {
	plan := duration.Plan{Slots: max(1, slots)}
	var running []study.Point
	ended := 0
	for _, t := range view.Each(trials) {
		switch {
		case t.State.Terminal() && t.State != study.TrialCancelled && t.Source != optimizer.SourceAdded:
			ended++
			continue
		case t.State != study.TrialRunning:
			continue
		}
		if point, err := p.space.Normalize(t.Parameters); err == nil {
			running = append(running, point)
			plan.Running = append(plan.Running, duration.Running{Seconds: sinceStart(t, now)})
		}
	}
	for i, e := range p.occupied.At(running...) {
		plan.Running[i].Estimate = e
	}
	plan.New, plan.Next = max(0, budget-ended-len(running)), p.occupied.At(p.next...)
	return seconds(plan.Left(p.seed))
}

// sinceStart returns for how many seconds a trial's program has run.
func sinceStart(t *view.Trial, now time.Time) float64 {
	if t.Times.Started.IsZero() {
		return 0
	}
	return max(0, now.Sub(t.Times.Started).Seconds())
}

// seconds returns a number of seconds, at most a century.
func seconds(s float64) time.Duration {
	const century = 100 * 365 * 24 * 3600
	return time.Duration(min(s, century) * float64(time.Second))
}
