package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// users applies what people and programs do to single trials: they enqueue a point, add a trial that
// was evaluated elsewhere, cancel one, or annotate one. Each event has one Answer: it was applied as a
// whole, or it changed nothing. A request id makes it safe to send an event again: the trial that it
// has made is its answer.
type users struct {
	shared
	life        *lifetime
	ladder      *ladder
	history     *history
	attempts    *attempts
	suggestions *suggestions
}

// enqueue makes a trial of a point that a user wants to have evaluated, or continues a trial that was stopped
// early. It waits outside of the parallelism. A point needs place in maxTrials; a continued trial does not,
// since its point has one already. A point that was evaluated before may be repeated. resumes says that the
// study has ended, and that the caller resumes it for the trial.
func (u *users) enqueue(ev Enqueue, resumes bool) {
	var from record.Trial // that is continued
	raw := u.ladder.atLowest(ev.Point)
	if ev.Continues != 0 {
		t, err := u.unfinished(ev.Continues)
		if err != nil {
			u.step.reply(nil, err)
			return
		}
		from = *t.record()
		raw = from.Point
	}
	point, known, err := u.wished(raw, ev.RequestID)
	switch {
	case err != nil:
		u.step.reply(nil, err)
	case known != nil:
		err = nil
		if known.rec.Source != optimizer.SourceRequested || known.rec.Predecessor != from.Number ||
			!u.spec.samePoint(known.rec.Point, point) {
			err = refusef("request_id %q belongs to trial %d, which is another one", ev.RequestID, known.rec.Number)
		}
		u.step.reply(known, err)
	case !resumes && !u.life.running():
		u.step.reply(nil, u.ended())
	case u.trials.affordable() == 0:
		u.step.reply(nil, refusef("the budget allows no more trials: %.6g of maxCost %g %s are spent, and the trials that run are expected "+
			"to take the rest; raise budget.maxCost",
			u.trials.spending.spent, u.spec.Definition.Spec.Budget.MaxCost, u.spec.Definition.Spec.Cost.Metric))
	case from.Number == 0 && u.trials.remaining() == 0:
		u.step.reply(nil, refusef("the budget allows no more trials: %d of maxTrials %d have ended and %d are open; raise budget.maxTrials",
			u.trials.counts.Ended(), u.spec.Definition.Spec.Budget.MaxTrials, len(u.trials.open)))
	case from.Number > 0 && u.finisherOf(from.Number) != 0:
		u.step.reply(nil, refusef("trial %d continues trial %d already", u.finisherOf(from.Number), from.Number))
	default:
		t := u.suggestions.insert(point, optimizer.SourceRequested, ev.RequestID, ev.Remarks)
		if from.Number > 0 {
			t.rec.Predecessor, t.rec.Checkpoint = from.Number, from.Checkpoint
			t.rec.Reasons.Note = fmt.Sprintf("runs trial %d to its end, which was stopped at step %d", from.Number, from.Stopped.Step)
		}
		u.trials.wish(t)
		u.step.reply(t, nil)
	}
}

// unfinished returns a trial that was stopped early and can be continued. The error says why another cannot.
func (u *users) unfinished(number int) (*trial, error) {
	t := u.trials.numbered(number)
	switch {
	case t == nil:
		return nil, study.NewError(ErrNoTrial, fmt.Sprintf("there is no trial %d; the last one is %d", number, len(u.trials.all)))
	case u.ladder.rungs != nil: // there, a predecessor is a trial at the level below
		return nil, refusef("the study has a fidelity: the best of its trials are continued by promotion, and no others")
	case t.facts().state != study.TrialPruned:
		return nil, refusef("trial %d is %s; only a trial that was stopped early (PRUNED) can be continued",
			number, strings.ToUpper(string(t.facts().state)))
	case t.outside:
		return nil, refusef("the point of trial %d is not in the study's space any more, which was edited", number)
	}
	return t, nil
}

// finisherOf returns the number of the trial that runs another one to its end, or has done so; 0 for none. One
// that was cancelled or has failed does not count: the other one can be continued again.
func (u *users) finisherOf(number int) int {
	for _, t := range u.trials.all[number:] {
		f := t.facts()
		if f.predecessor == number && f.state != study.TrialCancelled && f.state != study.TrialFailed {
			return f.number
		}
	}
	return 0
}

// finishing reports whether an open trial runs another one to its end.
func (u *users) finishing() bool {
	return u.ladder.rungs == nil && slices.ContainsFunc(u.trials.open, func(t *trial) bool { return t.facts().predecessor > 0 })
}

// finishes reports whether a trial runs another one to its end that was stopped early.
func (t *trial) finishes() bool {
	return t.rec.Predecessor > 0 && t.rec.Source == optimizer.SourceRequested
}

// add makes a trial that was evaluated elsewhere, which ends in this step. It takes no place in the
// budget.
func (u *users) add(ev Add) {
	point, known, err := u.wished(ev.Point, ev.RequestID)
	objectives := len(u.spec.Definition.Spec.Objectives())
	switch {
	case err != nil:
		u.step.reply(nil, err)
	case len(ev.Values) != objectives:
		u.step.reply(nil, invalidf("got %d values; want one for each of the study's objectives (%d)", len(ev.Values), objectives))
	case !study.Finite(ev.Values...):
		u.step.reply(nil, invalidf("the values are %v; want finite numbers", []float64(ev.Values)))
	case u.spec.unlimited(ev.Metrics) != nil:
		u.step.reply(nil, u.spec.unlimited(ev.Metrics))
	case known != nil:
		if known.rec.Source != optimizer.SourceAdded || !u.spec.samePoint(known.rec.Point, point) ||
			!slices.Equal(known.rec.Values, ev.Values) || !maps.Equal(known.rec.Metrics, finiteMetrics(ev.Metrics)) {
			err = refusef("request_id %q belongs to trial %d, which is another one", ev.RequestID, known.rec.Number)
		}
		u.step.reply(known, err)
	case !u.life.running():
		u.step.reply(nil, u.ended())
	default:
		t := u.suggestions.insert(point, optimizer.SourceAdded, ev.RequestID, ev.Remarks)
		t.rec.Values, t.rec.Metrics = slices.Clone(ev.Values), finiteMetrics(ev.Metrics)
		u.trials.counts.Added++
		u.history.fold(t, study.TrialCompleted)
		u.step.reply(t, nil)
	}
}

// wished checks a user's point, and returns the trial that the request has made already;
// nil if there is none. That trial has its record at hand.
func (u *users) wished(raw study.Point, request string) (study.Point, *trial, error) {
	point, err := u.spec.pointOf(raw)
	if err != nil {
		return nil, nil, err
	}
	if n := u.trials.requests[request]; request != "" && n > 0 {
		t := u.trials.all[n-1]
		u.step.restore(t)
		return point, t, nil
	}
	return point, nil, nil
}

// ended is the error for what an ended study refuses.
func (u *users) ended() error { return refusef("the study has ended: %s", u.life.state) }

// cancel ends a trial at a user's request. Its point is free again, so an exhausted space is not
// exhausted any more.
func (u *users) cancel(ev CancelTrial) {
	t := u.trials.numbered(ev.Trial)
	if t == nil {
		u.step.reply(nil, noTrial(ev.Trial))
		return
	}
	u.step.restore(t)
	switch {
	case t.rec.State == study.TrialCancelled:
		u.step.reply(t, nil)
	case t.rec.State.Terminal():
		u.step.reply(nil, refusef("%s", u.spec.ending(t)))
	default:
		t.rec.Cancelled = clip(cmp.Or(ev.Reason, "cancelled by a user"))
		u.attempts.cancel(t, t.rec.Last(), t.rec.Cancelled)
		u.trials.unwish(t)
		t.rec.Times.Ended = u.step.now
		u.history.fold(t, study.TrialCancelled)
		u.suggestions.exhaustion.restart(u.trials.position) // its point is free again
		u.step.reply(t, nil)
	}
}

// annotate changes the labels, the note and the attributes of a trial, which may have ended: they
// change no decision.
func (u *users) annotate(ev Annotate) {
	t := u.trials.numbered(ev.Trial)
	if t == nil {
		u.step.reply(nil, noTrial(ev.Trial))
		return
	}
	u.step.restore(t)
	changed := t.copy()
	annotate(&changed, ev)
	problems := slices.Concat(study.CheckLabels("labels", changed.Labels), study.CheckAttributes("attributes", changed.Attributes))
	if len(problems) > 0 {
		u.step.reply(nil, invalidf("%s", problems[0]))
		return
	}
	t.rec.Labels, t.rec.Note, t.rec.Attributes = changed.Labels, changed.Note, changed.Attributes
	u.step.touch(t)
	u.step.reply(t, nil)
}

// annotate gives a record what an event says. It replaces maps that snapshots share.
func annotate(r *record.Trial, ev Annotate) {
	labels := maps.Clone(r.Labels)
	for _, key := range ev.Remove {
		delete(labels, key)
	}
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, ev.Labels)
	if r.Labels = labels; len(labels) == 0 {
		r.Labels = nil
	}
	if ev.Note != nil {
		r.Note = *ev.Note
	}
	r.Attributes = study.WithAttributes(r.Attributes, ev.Attributes)
}
