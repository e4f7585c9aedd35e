package engine

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// errUnusable says that no suggestion of an answer can be used.
var errUnusable = errors.New("the answer has no usable suggestion")

// suggested applies an answer of the optimiser. It ignores answers that the engine
// does not wait for, such as a second answer to a request.
func (e *Engine) suggested(ev Suggested) {
	d := &e.demand
	if ev.Ask != nil && ev.Ask == d.fallback {
		d.fallback = nil
		if e.running() && e.spec.current(ev.Ask) {
			d.fallen = &ev // used once the needs of this step are known
		}
		return
	}
	if ev.Ask == nil || ev.Ask != d.ask {
		return
	}
	d.ask = nil
	took := e.step.now.Sub(ev.Ask.At)
	if d.askTime == 0 {
		d.askTime = took
	}
	d.askTime += (took - d.askTime) / 4
	if !e.running() || !e.spec.current(ev.Ask) {
		return
	}
	switch {
	case errors.Is(ev.Err, optimizer.ErrExhausted) && ev.Ask.From < d.resumed: // ask again
	case errors.Is(ev.Err, optimizer.ErrExhausted):
		d.exhausted, d.unproved = true, errors.Is(ev.Err, optimizer.ErrNoOther)
		d.ready, d.needs = nil, nil
	case e.findsNothing(ev):
		d.exhausted, d.infeasible = true, ev.Err
		d.ready, d.needs = nil, nil
	case ev.Err != nil:
		e.optimizerFailed(ev.Err)
	default:
		e.accept(ev)
	}
}

// findsNothing reports whether an answer says that no feasible point can be found, and asking
// again would not help: nothing was pending that a point could have been the same as.
func (e *Engine) findsNothing(ev Suggested) bool {
	return errors.Is(ev.Err, optimizer.ErrNoFeasible) && len(ev.Ask.Problem.Pending) == 0 && ev.Ask.From >= e.demand.resumed
}

// accept keeps the suggestions of an answer that are points of the space.
func (e *Engine) accept(ev Suggested) {
	d := &e.demand
	list := make([]ready, 0, len(ev.Suggestions))
	refused := len(ev.Suggestions) == 0
	for i, s := range ev.Suggestions[:min(len(ev.Suggestions), ev.Ask.N)] {
		s.Point = e.spec.space.AtLevel(s.Point, 0)
		if err := e.spec.space.Check(s.Point); err != nil {
			e.step.out.warn("refused suggestion %d of the optimiser's answer to request %d: %v", i+1, ev.Ask.Request, err)
			refused = true
			continue
		}
		if tried, fault := e.tried.has(s, ev.Ask.From); tried {
			refused = refused || fault
			continue
		}
		list = append(list, ready{s, i})
	}
	state := ev.State
	if len(state) > optimizer.MaxStateSize {
		e.step.out.warn("the optimiser's state has %d bytes, more than the limit of %d; keeping the previous state", len(state), optimizer.MaxStateSize)
		state = ev.Ask.State
	}
	if len(list) == 0 {
		if refused {
			e.optimizerFailed(errUnusable)
		}
		return
	}
	d.ready, d.answer = list, &answer{ask: ev.Ask, at: e.step.now, state: state, record: ev.Ask.record(ev.Cut)}
	d.askAfter = time.Time{}
	e.life.say("")
}

// optimizerFailed lets fallbacks fill the needs until the optimiser is asked again.
func (e *Engine) optimizerFailed(err error) {
	e.demand.askAfter = e.step.now.Add(askPause)
	e.step.out.warn("the optimiser failed: %v", err)
	e.life.say(clip(fmt.Sprintf("the optimiser failed, using fallback suggestions: %v", err)))
}

// createReady makes a trial of the next ready suggestion. With the first suggestion of an
// answer it also commits the model's state. It returns false if no suggestion is left.
func (e *Engine) createReady() bool {
	d := &e.demand
	for len(d.ready) > 0 {
		s, a := d.ready[0], d.answer
		d.ready = d.ready[1:]
		if tried, _ := e.tried.has(s.Suggestion, a.ask.From); tried { // a fallback was the same point
			continue
		}
		e.create(s, a)
		if !a.committed {
			a.committed = true
			e.model = record.Model{Request: a.ask.Request, State: a.state}
			e.step.changed.model = true
		}
		return true
	}
	return false
}

// fallBack makes up to n trials of an answer with fallbacks and returns how many needs
// it has met.
func (e *Engine) fallBack(n int) int {
	d := &e.demand
	fallen := d.fallen
	defer func() { d.fallen = nil }() // until then tried keeps what its suggestions are compared with
	ask, list, err := fallen.Ask, fallen.Suggestions, fallen.Err
	if errors.Is(err, optimizer.ErrExhausted) {
		if d.ask != nil { // wait for the optimiser's answer, which may repeat points
			d.fallbackAfter = e.step.now.Add(askPause)
			return 0
		}
		if ask.From >= d.resumed {
			d.exhausted, d.unproved = true, errors.Is(err, optimizer.ErrNoOther)
			return len(d.needs)
		}
		return 0
	}
	if d.ask == nil && e.findsNothing(*fallen) { // the optimiser has failed as well
		d.exhausted, d.infeasible = true, err
		return len(d.needs)
	}
	list = list[:min(len(list), ask.N)]
	from := &answer{ask: ask, at: fallen.At, record: ask.record(fallen.Cut)}
	made, unusable := 0, len(list) < ask.N
	for i, s := range list {
		if made == n {
			break
		}
		s.Point = e.spec.space.AtLevel(s.Point, 0)
		if bad := e.spec.space.Check(s.Point); bad != nil {
			err, unusable = bad, true
			continue
		}
		if tried, fault := e.tried.has(s, ask.From); tried {
			unusable = unusable || fault
			continue
		}
		if s.Source != optimizer.SourceInitial {
			s.Source = optimizer.SourceFallback
		}
		e.create(ready{s, i}, from)
		made++
	}
	if unusable && made < n {
		e.step.out.warn("used only %d of %d fallback suggestions: %v", made, ask.N, cmp.Or(err, errUnusable))
		d.fallbackAfter = e.step.now.Add(askPause)
	}
	return made
}

// create makes a trial of a suggestion of an answer, and opens its first attempt.
func (e *Engine) create(s ready, a *answer) {
	t := e.admit(record.Trial{
		Point: s.Point, Source: s.Source, Reasons: FiniteReasons(s.Reasons),
		Request: a.ask.Request, Place: s.place, From: a.ask.From, Ask: a.record,
		Staleness: e.history.observations.all - a.ask.observed,
		Times:     record.Times{Asked: a.ask.At, Suggested: a.at, Created: e.step.now},
	})
	e.trials.setState(t, study.TrialPending)
	e.attempts.open(t)
}

// admit makes a trial of a record, and remembers its point: no answer that is still to come may
// repeat it.
func (e *Engine) admit(r record.Trial) *trial {
	t := e.trials.create(r)
	e.ladder.setRung(t)
	e.tried.add(t)
	e.tried.addRecent(t, e.demand.oldest(t.rec.Created))
	return t
}

// FiniteReasons returns the reasons as they are recorded: without values that are not
// finite, since JSON cannot hold them. The logarithm of an acquisition value may be
// infinite.
func FiniteReasons(r optimizer.Reasons) optimizer.Reasons {
	if r.Mean != nil && !finite(*r.Mean) {
		r.Mean = nil
	}
	if r.SD != nil && !finite(*r.SD) {
		r.SD = nil
	}
	r.Acquisition = finiteMetrics(r.Acquisition)
	return r
}
