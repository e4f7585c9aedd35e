package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// suggested applies an answer of the optimiser. It ignores answers that the engine
// does not wait for, such as a second answer to a request.
func (s *suggestions) suggested(ev Suggested) {
	switch ev.Ask {
	case nil:
	case s.fallback:
		s.fallback = nil
		if s.counts(ev.Ask) {
			s.fallen = &ev // used once the needs of this step are known
		}
	case s.ask:
		s.ask = nil
		took := s.step.now.Sub(ev.Ask.At)
		if s.askTime == 0 {
			s.askTime = took
		}
		s.askTime += (took - s.askTime) / 4
		if s.counts(ev.Ask) {
			s.history.expect(ev.Gain, ev.Ask.completed)
			s.answered(ev)
		}
	}
}

// counts reports whether an answer to a request may be used: the study has not ended, and its space
// is still the one that was asked about.
func (s *suggestions) counts(ask *Ask) bool { return s.life.running() && s.spec.current(ask) }

// answered applies an answer that counts. One without a point makes the engine stop asking, ask
// again, or wait a moment, by what it says.
func (s *suggestions) answered(ev Suggested) {
	switch {
	case errors.Is(ev.Err, optimizer.ErrExhausted) && s.again():
		s.ready = nil
	case s.exhaustion.conclude(ev.Err, ev.Ask):
		if s.ready = nil; s.exhaustion.late {
			s.life.say(optimizer.ErrNoTime.Error() + ": the study ends with the trials that run")
		}
	case errors.Is(ev.Err, optimizer.ErrExhausted), errors.Is(ev.Err, optimizer.ErrNoTime): // it was, before an edit: ask again
	case ev.Err != nil:
		s.failed(ev.Err)
	default:
		s.accept(ev)
	}
}

// accept replaces the suggestions that are left of the last answer by those of this one that can become
// trials. If none of them can, the optimiser has failed. It has not if other trials took its points while it
// worked: then it is asked again at once.
func (s *suggestions) accept(ev Suggested) {
	list := make([]ready, 0, len(ev.Suggestions))
	refused := len(ev.Suggestions) == 0
	for i, x := range ev.Suggestions[:min(len(ev.Suggestions), ev.Ask.N)] {
		x.Point = s.spec.space.AtLevel(x.Point, 0)
		switch err := s.check(x, ev.Ask.From); {
		case err == nil:
			list = append(list, ready{x, i})
		case errors.Is(err, errOvertaken):
		case errors.Is(err, errRepeated):
			refused = true
		default:
			s.step.out.warn("refused suggestion %d of the optimiser's answer to request %d: %v", i+1, ev.Ask.Request, err)
			refused = true
		}
	}
	state := ev.State
	if len(state) > optimizer.MaxStateSize {
		s.step.out.warn("the optimiser's state has %d bytes, more than the limit of %d; keeping the previous state",
			len(state), optimizer.MaxStateSize)
		state = ev.Ask.State
	}
	if len(list) == 0 {
		if refused {
			s.failed(errUnusable)
		}
		return
	}
	s.ready, s.answer = list, &answer{ask: ev.Ask, at: s.step.now, state: state, record: ev.Ask.record(ev.Cut)}
	s.askAfter = time.Time{}
	s.life.say("")
}

// check returns why a suggestion cannot become a trial: its point is not in the space, or has become
// a trial already. from is the ledger position of its request.
func (s *suggestions) check(x optimizer.Suggestion, from int64) error {
	if err := s.spec.space.Check(x.Point); err != nil {
		return err
	}
	switch tried, fault := s.tried.has(x, from); {
	case fault:
		return errRepeated
	case tried:
		return errOvertaken
	default:
		return nil
	}
}

// failed pauses the requests to the optimiser. Fallbacks fill the needs until then, so that a
// broken optimiser neither stops the study nor is asked in a loop.
func (s *suggestions) failed(err error) {
	s.askAfter = s.step.now.Add(askPause)
	s.step.out.warn("the optimiser failed: %v", err)
	s.life.say(clip(fmt.Sprintf("the optimiser failed, using fallback suggestions: %v", err)))
}

// createReady makes a trial of the next ready suggestion. It returns false if none is left, or if the budget allows none. The
// optimiser's state is committed with the first trial of its answer, not before: see suggestions.
func (s *suggestions) createReady() bool {
	for len(s.ready) > 0 && s.trials.affordable() > 0 {
		x, a := s.ready[0], s.answer
		s.ready = s.ready[1:]
		if tried, _ := s.tried.has(x.Suggestion, a.ask.From); tried || s.late(x.Suggestion) { // a fallback was the same point
			continue
		}
		s.create(x, a)
		if !a.committed {
			a.committed = true
			s.model = record.Model{Request: a.ask.Request, State: a.state}
			s.step.changed.model = true
		}
		return true
	}
	return false
}

// fallBack makes up to n trials of an answer with fallbacks, if this step has brought one, and
// returns how many. exhausted says that the answer has settled that there is no other point.
func (s *suggestions) fallBack(n int) (made int, exhausted bool) {
	fallen := s.fallen
	if fallen == nil {
		return 0, false
	}
	defer func() { s.fallen = nil }() // until then tried keeps what its suggestions are compared with
	ask, list, cause := fallen.Ask, fallen.Suggestions, fallen.Err
	late := errors.Is(cause, optimizer.ErrNoTime)
	none := late || errors.Is(cause, optimizer.ErrExhausted)
	switch {
	case none && (s.ask != nil || !late && s.again()): // wait for the optimiser's answer, which may repeat points
		s.fallbackAfter = s.step.now.Add(askPause)
		return 0, false
	case s.ask == nil && s.exhaustion.conclude(cause, ask):
		return 0, true
	case none:
		return 0, false
	}
	list = list[:min(len(list), ask.N)]
	from := &answer{ask: ask, at: fallen.At, record: ask.record(fallen.Cut)}
	unusable := len(list) < ask.N
	for i, x := range list {
		if made == n || s.trials.affordable() == 0 {
			break
		}
		x.Point = s.spec.space.AtLevel(x.Point, 0)
		switch err := s.check(x, ask.From); {
		case err == nil && s.late(x):
			cause, unusable = optimizer.ErrNoTime, true
		case err == nil:
			if x.Source != optimizer.SourceInitial {
				x.Source = optimizer.SourceFallback
			}
			s.create(ready{x, i}, from)
			made++
		case errors.Is(err, errOvertaken):
		case errors.Is(err, errRepeated):
			unusable = true
		default:
			cause, unusable = err, true
		}
	}
	if unusable && made < n {
		s.step.out.warn("used only %d of %d fallback suggestions: %v", made, ask.N, cmp.Or(cause, errUnusable))
		s.fallbackAfter = s.step.now.Add(askPause)
	}
	return made, false
}

// late reports whether an evaluation that begins now is expected to end too late.
func (s *suggestions) late(x optimizer.Suggestion) bool {
	return s.spec.Definition.Spec.Budget.OfTime() && x.Seconds > s.life.left().Seconds() && s.spec.on(safetyTime)
}

// create makes a trial of a suggestion and hands it out at once: there is a slot for it, or it is
// made ahead of one.
func (s *suggestions) create(x ready, a *answer) {
	t := s.admit(record.Trial{
		Point: x.Point, Source: x.Source, Reasons: FiniteReasons(x.Reasons), Expected: priced(x.Cost),
		Request: a.ask.Request, Place: x.place, From: a.ask.From, Ask: a.record,
		Staleness: s.history.observations.all - a.ask.observed,
		Times:     record.Times{Asked: a.ask.At, Suggested: a.at, Created: s.step.now},
	})
	s.trials.setState(t, study.TrialPending)
	s.attempts.open(t)
}

// insert makes a trial that the optimiser did not suggest. The caller MUST set its state.
func (s *suggestions) insert(point study.Point, source optimizer.Source, request string, remarks Remarks) *trial {
	return s.admit(record.Trial{
		From: s.trials.position, Point: point, Source: source, RequestID: request, Labels: maps.Clone(remarks.Labels), Note: remarks.Note,
		Times: record.Times{Asked: s.step.now, Suggested: s.step.now, Created: s.step.now},
	})
}

// admit makes a trial of a record. It MUST be the only way to a new trial: what it remembers of the
// point is what keeps the answers that are still to come from repeating it.
func (s *suggestions) admit(r record.Trial) *trial {
	t := s.trials.create(r)
	s.ladder.setRung(t)
	s.tried.add(t)
	s.tried.addRecent(t, s.oldest(t.rec.Created))
	return t
}

// FiniteReasons returns the reasons as they are recorded: without values that are not
// finite, since JSON cannot hold them. The logarithm of an acquisition value may be
// infinite.
func FiniteReasons(r optimizer.Reasons) optimizer.Reasons {
	if r.Mean != nil && !study.Finite(*r.Mean) {
		r.Mean = nil
	}
	if r.SD != nil && !study.Finite(*r.SD) {
		r.SD = nil
	}
	r.Acquisition = finiteMetrics(r.Acquisition)
	return r
}
