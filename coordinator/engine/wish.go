package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// enqueue makes a trial of a point that a user wants to have evaluated.
func (e *Engine) enqueue(ev Enqueue) {
	point, known, err := e.wished(e.ladder.atLowest(ev.Point), ev.RequestID)
	switch {
	case err != nil:
		e.step.reply(nil, err)
	case known != nil:
		err = nil
		if known.rec.Source != optimizer.SourceRequested || !e.spec.samePoint(known.rec.Point, point) {
			err = refusef("request_id %q belongs to trial %d, which is another one", ev.RequestID, known.rec.Number)
		}
		e.step.reply(known, err)
	case e.trials.remaining() <= 0:
		e.step.reply(nil, refusef("the study's budget has no room: %d trials of maxTrials %d have ended and %d are open; raise budget.maxTrials",
			e.trials.counts.Ended(), e.spec.Definition.Spec.Budget.MaxTrials, len(e.trials.open)))
	default:
		t := e.insert(point, optimizer.SourceRequested, ev.RequestID, ev.Remarks)
		e.trials.wish(t)
		e.step.reply(t, nil)
	}
}

// add makes a trial that was evaluated elsewhere.
func (e *Engine) add(ev Add) {
	point, known, err := e.wished(ev.Point, ev.RequestID)
	objectives := len(e.spec.Definition.Spec.Objectives())
	switch {
	case err != nil:
		e.step.reply(nil, err)
	case len(ev.Values) != objectives:
		e.step.reply(nil, invalidf("got %d values; want one for each of the study's objectives (%d)", len(ev.Values), objectives))
	case !allFinite(ev.Values):
		e.step.reply(nil, invalidf("the values are %v; want finite numbers", []float64(ev.Values)))
	case e.spec.unlimited(ev.Metrics) != nil:
		e.step.reply(nil, e.spec.unlimited(ev.Metrics))
	case known != nil:
		if known.rec.Source != optimizer.SourceAdded || !e.spec.samePoint(known.rec.Point, point) ||
			!slices.Equal(known.rec.Values, ev.Values) || !maps.Equal(known.rec.Metrics, finiteMetrics(ev.Metrics)) {
			err = refusef("request_id %q belongs to trial %d, which is another one", ev.RequestID, known.rec.Number)
		}
		e.step.reply(known, err)
	default:
		t := e.insert(point, optimizer.SourceAdded, ev.RequestID, ev.Remarks)
		t.rec.Values, t.rec.Metrics = slices.Clone(ev.Values), finiteMetrics(ev.Metrics)
		e.trials.counts.Added++
		e.history.fold(t, study.TrialCompleted)
		e.step.reply(t, nil)
	}
}

// Requested reports whether a user's request has made a trial; false for an empty id.
func (e *Engine) Requested(id string) bool { return id != "" && e.trials.requests[id] > 0 }

// wished checks a user's point, and returns the trial that the request has made already;
// nil if there is none. That trial has its record at hand.
func (e *Engine) wished(raw study.Point, request string) (study.Point, *trial, error) {
	point, err := e.spec.pointOf(raw)
	if err != nil {
		return nil, nil, err
	}
	if n := e.trials.requests[request]; request != "" && n > 0 {
		t := e.trials.all[n-1]
		e.step.restore(t)
		return point, t, nil
	}
	if !e.running() {
		return nil, nil, refusef("the study has ended: %s", e.life.state)
	}
	return point, nil, nil
}

// insert makes a trial that the optimiser did not suggest.
func (e *Engine) insert(point study.Point, source optimizer.Source, request string, remarks Remarks) *trial {
	return e.admit(record.Trial{
		From: e.trials.position, Point: point, Source: source, RequestID: request, Labels: maps.Clone(remarks.Labels), Note: remarks.Note,
		Times: record.Times{Asked: e.step.now, Suggested: e.step.now, Created: e.step.now},
	})
}

// cancelTrial ends a trial at a user's request.
func (e *Engine) cancelTrial(ev CancelTrial) {
	t := e.trials.numbered(ev.Trial)
	if t == nil {
		e.step.reply(nil, noTrial(ev.Trial))
		return
	}
	e.step.restore(t)
	switch {
	case t.rec.State == study.TrialCancelled:
		e.step.reply(t, nil)
	case t.rec.State.Terminal():
		e.step.reply(nil, refusef("%s", e.ending(t)))
	default:
		t.rec.Cancelled = clip(cmp.Or(ev.Reason, "cancelled by a user"))
		e.attempts.cancel(t, t.rec.Last(), t.rec.Cancelled)
		e.trials.cancelled(t)
		t.rec.Times.Ended = e.step.now
		e.history.fold(t, study.TrialCancelled)
		e.demand.exhausted, e.demand.infeasible, e.demand.resumed = false, nil, e.trials.position // its point is free again
		e.step.reply(t, nil)
	}
}

// annotate changes the labels, the note and the attributes of a trial.
func (e *Engine) annotate(ev Annotate) {
	t := e.trials.numbered(ev.Trial)
	if t == nil {
		e.step.reply(nil, noTrial(ev.Trial))
		return
	}
	e.step.restore(t)
	labels := maps.Clone(t.rec.Labels) // snapshots share them
	for _, key := range ev.Remove {
		delete(labels, key)
	}
	if labels == nil && len(ev.Labels) > 0 {
		labels = map[string]string{}
	}
	maps.Copy(labels, ev.Labels)
	if problems := study.CheckLabels("labels", labels); len(problems) > 0 {
		e.step.reply(nil, invalidf("%s", problems[0]))
		return
	}
	attributes := study.WithAttributes(t.rec.Attributes, ev.Attributes) // snapshots share the old ones
	if problems := study.CheckAttributes("attributes", attributes); len(problems) > 0 {
		e.step.reply(nil, invalidf("%s", problems[0]))
		return
	}
	t.rec.Attributes = attributes
	if t.rec.Labels = labels; len(labels) == 0 {
		t.rec.Labels = nil
	}
	if ev.Note != nil {
		t.rec.Note = *ev.Note
	}
	e.step.touch(t)
	e.step.reply(t, nil)
}
