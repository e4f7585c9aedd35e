package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// # Studies whose trials clients ask for
//
// If a study has no command, clients of the API evaluate its trials. A client that wants
// trials is a seeker. The engine makes trials only for seekers, and a trial is claimed
// in the step that makes it: its first record names the client. So nothing is published,
// and nobody is told anything by a message: clients are told by the answers to their
// calls. What they say is applied like the messages of workers: Told like Finished,
// Measured, and, when they are silent, Lost.

// seeker is a client that wants to hold trials.
type seeker struct {
	client string
	want   int // how many trials it wants to hold
	// missing is how many of them it does not hold yet; set by count.
	missing int
}

// Instruction says what a client should do with a trial, and why.
type Instruction struct {
	Trial  int
	Do     Action
	Reason string
}

// Action is what a client should do with a trial.
type Action int

// What a client should do with a trial.
const (
	// Continue the evaluation.
	Continue Action = iota
	// Prune: stop the evaluation early and tell that with messaging.OutcomePruned.
	Prune
	// Abandon: stop the evaluation and forget the trial.
	Abandon
)

// The kinds of errors in an Answer.
var (
	// ErrNoTrial says that there is no such trial.
	ErrNoTrial = study.NewError(study.ErrNotFound, "no such trial")
	// ErrRefused says that the study, the trial or the client is not in a state for the
	// event.
	ErrRefused = study.NewError(study.ErrPrecondition, "refused")
	// ErrInvalid says that the event itself is wrong.
	ErrInvalid = study.NewError(study.ErrInvalid, "invalid")
)

// Answer answers an event that a user or a client waits for.
type Answer struct {
	// Trial is the trial after the event.
	Trial record.Trial
	// Err says why the event changed nothing; nil if it was applied, or repeats one that
	// was.
	Err error
}

// refusef is the error of an event that the state does not allow.
func refusef(format string, args ...any) error {
	return study.NewError(ErrRefused, fmt.Sprintf(format, args...))
}

// invalidf is the error of an event that is wrong itself.
func invalidf(format string, args ...any) error {
	return study.NewError(ErrInvalid, fmt.Sprintf(format, args...))
}

// noTrial is the error of an event about a trial that does not exist.
func noTrial(number int) error { return study.NewError(ErrNoTrial, fmt.Sprintf("trial %d", number)) }

// seekers are the clients that want to hold trials, longest first.
type seekers []seeker

// set sets how many trials a client wants to hold; 0 ends its search.
func (l *seekers) set(client string, want int) {
	i := slices.IndexFunc(*l, func(s seeker) bool { return s.client == client })
	switch {
	case i < 0 && want > 0:
		*l = append(*l, seeker{client: client, want: want})
	case i >= 0 && want > 0:
		(*l)[i].want = want
	case i >= 0:
		*l = slices.Delete(*l, i, i+1)
	}
}

// count counts what each seeker is missing, and drops those that hold as many trials as they
// want.
func (l *seekers) count(open []*trial) {
	if len(*l) == 0 {
		return
	}
	held := holds(open)
	for i := range *l {
		s := &(*l)[i]
		s.missing = s.want - held[s.client]
	}
	*l = slices.DeleteFunc(*l, func(s seeker) bool { return s.missing <= 0 })
}

// missing returns how many trials the seekers are missing.
func (l seekers) missing() int {
	n := 0
	for i := range l {
		n += l[i].missing
	}
	return n
}

// next returns the client that has waited longest, for which a trial is made. A seeker that
// then holds what it wants is dropped: when it has ended a trial it must ask again for the
// next, or it would get one that it never reads.
func (l *seekers) next() string {
	i := slices.IndexFunc(*l, func(s seeker) bool { return s.missing > 0 })
	s := &(*l)[i] // room() has counted it
	client := s.client
	if s.missing--; s.missing == 0 {
		*l = slices.Delete(*l, i, i+1)
	}
	return client
}

// Held returns the first trials that a client holds, oldest first and at most limit. more
// reports whether it can hold more before another trial ends.
func (e *Engine) Held(client string, limit int) (held []record.Trial, more bool) {
	for _, t := range e.trials.open {
		if len(held) == limit {
			break
		}
		if t.holder() == client {
			held = append(held, t.copy())
		}
	}
	return held, e.running() && (e.trials.waiting() || !e.demand.exhausted && min(e.trials.vacancies(), e.trials.remaining()) > 0)
}

// Holds returns how many trials each client holds.
func (e *Engine) Holds() map[string]int { return holds(e.trials.open) }

func holds(open []*trial) map[string]int {
	n := map[string]int{}
	for _, t := range open {
		if client := t.holder(); client != "" {
			n[client]++
		}
	}
	return n
}

// holder returns the client or worker that holds the trial's open attempt; "" if nobody does.
func (t *trial) holder() string {
	if a := t.rec.Last(); a != nil && a.State == study.AttemptOpen {
		return a.Worker
	}
	return ""
}

// Attempt returns the attempt by which a client holds or last held a trial, or the one
// that it names if attempt is not 0.
func (e *Engine) Attempt(client string, number, attempt int) (messaging.AttemptID, error) {
	t, a, err := e.heldBy(client, number, attempt)
	if err != nil {
		return messaging.AttemptID{}, err
	}
	return e.spec.attemptID(t, a), nil
}

// HasCommand returns the error for a call that only studies without a command accept.
func HasCommand(spec *study.Spec) error {
	return refusef("the study has a command, so workers of the pool %q evaluate its trials: leave spec.trial.command out of a study whose trials clients ask for", spec.Pool)
}

// heldBy returns the last attempt of a trial that a client was given, or the one that it
// names if attempt is not 0. The trial has its record at hand.
func (e *Engine) heldBy(client string, number, attempt int) (*trial, *record.Attempt, error) {
	if !e.spec.byClients() {
		return nil, nil, HasCommand(&e.spec.Definition.Spec)
	}
	t := e.trials.numbered(number)
	if t == nil {
		return nil, nil, noTrial(number)
	}
	e.step.restore(t)
	for i := len(t.rec.Attempts) - 1; i >= 0; i-- {
		if a := &t.rec.Attempts[i]; a.Worker == client && (attempt == 0 || attempt == a.Number) {
			return t, a, nil
		}
	}
	if attempt != 0 {
		return nil, nil, refusef("attempt %d of trial %d was never given to client %s", attempt, number, client)
	}
	who := "nobody"
	if a := t.rec.Last(); a != nil {
		who = "client " + a.Worker
	}
	return nil, nil, refusef("trial %d was never given to client %s: %s has it", number, client, who)
}

// Instruct returns what a client should do with a trial, and why. It refuses a trial that
// the client was never given. attempt is the one that the client evaluates; 0 for the last
// one that it was given.
func (e *Engine) Instruct(client string, number, attempt int) (Instruction, error) {
	t, a, err := e.heldBy(client, number, attempt)
	if err != nil {
		return Instruction{}, err
	}
	next := Instruction{Trial: number}
	switch {
	case t.rec.State.Terminal():
		next.Do, next.Reason = Abandon, e.ending(t)
	case a.State != study.AttemptOpen:
		next.Do, next.Reason = Abandon, fmt.Sprintf("the client does not hold the trial any more: its attempt has ended: %s", a.State)
	case t.rec.Stopped != nil:
		next.Do, next.Reason = Prune, t.rec.Stopped.Reason
	}
	return next, nil
}

// ending describes how a trial has ended.
func (e *Engine) ending(t *trial) string {
	text := fmt.Sprintf("trial %d has ended: %s", t.rec.Number, strings.ToUpper(string(t.rec.State)))
	if len(t.rec.Values) > 0 {
		for i, o := range e.spec.Definition.Spec.Objectives() {
			text += fmt.Sprintf("%s %s %v", []string{" with", ","}[min(i, 1)], o.Metric, t.rec.Values[i])
		}
	}
	if a := t.rec.Last(); a != nil && a.Failure != nil {
		text += ": " + a.Failure.Reason
	}
	return text
}

// Contradicts returns an error if a trial's curve has another value of one of the metrics
// at a step. The trial's curve MUST be in memory: see Forgotten.
func (e *Engine) Contradicts(number int, step int64, metrics map[string]float64) error {
	for _, s := range e.Curve(number) {
		told, ok := metrics[s.Metric]
		if !ok || !finite(told) {
			continue
		}
		for _, p := range s.Points {
			if p.Step == step && p.Value != told {
				return refusef("%s of trial %d is recorded as %v at step %d, got %v", s.Metric, number, p.Value, step, told)
			}
		}
	}
	return nil
}

// clientEnded applies what a client says of a trial's end.
func (e *Engine) clientEnded(ev Told) {
	t, a, err := e.heldBy(ev.Client, ev.Trial, ev.Attempt)
	if err != nil {
		e.step.reply(nil, err)
		return
	}
	r := &messaging.Result{
		Version: messaging.SchemaVersion, AttemptID: e.spec.attemptID(t, a), Worker: ev.Client,
		Outcome: ev.Outcome, Values: ev.Values, Metrics: ev.Metrics, Failure: ev.Failure, Checkpoint: ev.Checkpoint,
		Claimed: a.Claimed, Started: a.Started, Ended: e.step.now,
	}
	as := interpret(&e.spec.Definition.Spec, r)
	missing := e.spec.unlimited(ev.Metrics)
	objectives := len(e.spec.Definition.Spec.Objectives())
	answers := as.outcome == messaging.OutcomeCompleted || as.outcome == messaging.OutcomeInfeasible
	switch {
	case ev.Outcome == messaging.OutcomeCompleted && len(ev.Values) != objectives,
		ev.Outcome == messaging.OutcomePruned && len(ev.Values) != 0 && len(ev.Values) != objectives:
		err = invalidf("got %d values; want one for each of the study's objectives (%d)", len(ev.Values), objectives)
	case ev.Outcome == messaging.OutcomeCompleted && missing != nil:
		err = missing
	case a.State != study.AttemptOpen && same(t, a, r, as): // told again
	case t.rec.State.Terminal():
		err = refusef("%s", e.ending(t))
	case a.State != study.AttemptOpen && !answers:
		err = refusef("client %s does not hold trial %d any more: its attempt %d has ended: %s", ev.Client, ev.Trial, a.Number, a.State)
	case as.outcome == messaging.OutcomePruned && t.rec.Stopped == nil:
		err = refusef("nobody has decided to prune trial %d: complete it without pruned", ev.Trial)
	default:
		if err = e.amend(t, ev.Point); err == nil {
			e.results.finished(r)
		}
	}
	e.step.reply(t, err)
}

// amend gives an open trial the point that its client has evaluated, if that is not the
// suggested one.
func (e *Engine) amend(t *trial, raw study.Point) error {
	if raw == nil {
		return nil
	}
	point, err := e.spec.pointOf(raw)
	if err != nil {
		return err
	}
	if e.spec.samePoint(point, t.rec.Point) {
		return nil
	}
	before, _ := e.spec.space.Level(t.rec.Point)
	if after, leveled := e.spec.space.Level(point); leveled && after != before {
		return invalidf("parameters: the level of the fidelity is another one than that of trial %d", t.rec.Number)
	}
	e.tried.remove(t)
	t.rec.Suggested, t.rec.Point, t.outside = t.rec.Asked(), point, false
	t.rec.Metrics = nil // an earlier attempt has evaluated another point
	e.tried.add(t)
	e.step.touch(t)
	return nil
}

// same reports whether a result says what is recorded of its attempt.
func same(t *trial, a *record.Attempt, r *messaging.Result, as interpreted) bool {
	switch {
	case a.Outcome != as.outcome:
		return false
	case a.Outcome == messaging.OutcomeCompleted:
		return slices.Equal(t.rec.Values, r.Values) && maps.Equal(t.rec.Metrics, finiteMetrics(r.Metrics))
	case a.Outcome == messaging.OutcomePruned:
		return len(r.Values) == 0 || slices.Equal(t.rec.Values, r.Values)
	case a.Failure != nil && as.failure != nil:
		return a.Failure.Reason == as.failure.Reason
	default:
		return true
	}
}
