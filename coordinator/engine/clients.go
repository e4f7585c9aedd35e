package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// clients applies what clients of the API tell of the trials that they hold.
//
// If a study has no command, clients of the API evaluate its trials. A client that wants
// trials is a seeker. The engine makes trials only for seekers, and a trial is claimed
// in the step that makes it: its first record names the client. So nothing is published,
// and nobody is told anything by a message: clients are told by the answers to their
// calls. What they say is applied like the messages of workers: Told like Finished,
// Measured, and, when they are silent, Lost.
type clients struct {
	shared
	tried   *tried
	results *results
}

// Instruction says what a client should do with a trial, and why.
type Instruction struct {
	Trial  int
	Do     Action
	Reason string
	// Ignored explains what the curve has not taken of the reports that it answers, in at most ten lines.
	Ignored []string
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

// The kinds of errors in an Answer; refusef, invalidf and noTrial make them.
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

func refusef(format string, args ...any) error {
	return study.NewError(ErrRefused, fmt.Sprintf(format, args...))
}

func invalidf(format string, args ...any) error {
	return study.NewError(ErrInvalid, fmt.Sprintf(format, args...))
}

func noTrial(number int) error { return study.NewError(ErrNoTrial, fmt.Sprintf("trial %d", number)) }

// heldBy returns the last attempt of a trial that a client was given, or the one that it
// names if attempt is not 0. The trial has its record at hand.
func (c *clients) heldBy(client string, number, attempt int) (*trial, *record.Attempt, error) {
	if !c.spec.byClients() {
		return nil, nil, HasCommand(&c.spec.Definition.Spec)
	}
	t := c.trials.numbered(number)
	if t == nil {
		return nil, nil, noTrial(number)
	}
	c.step.restore(t)
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

// instruct returns what a client should do with a trial, and why. It refuses a trial that
// the client was never given. attempt is the one that the client evaluates; 0 for the last
// one that it was given.
func (c *clients) instruct(client string, number, attempt int) (Instruction, error) {
	t, a, err := c.heldBy(client, number, attempt)
	if err != nil {
		return Instruction{}, err
	}
	next := Instruction{Trial: number}
	switch {
	case t.rec.State.Terminal():
		next.Do, next.Reason = Abandon, c.spec.ending(t)
	case a.State != study.AttemptOpen:
		next.Do, next.Reason = Abandon, fmt.Sprintf("the client does not hold the trial any more: its attempt has ended: %s", a.State)
	case t.rec.Stopped != nil:
		next.Do, next.Reason = Prune, t.rec.Stopped.Reason
	}
	return next, nil
}

// ended applies what a client says of a trial's end. It is checked more strictly than a worker's
// result, since the client waits for the answer and can be told what is wrong. What it has said
// before is accepted again without effect, so that a call whose answer was lost can be repeated.
func (c *clients) ended(ev Told) {
	t, a, err := c.heldBy(ev.Client, ev.Trial, ev.Attempt)
	if err != nil {
		c.step.reply(nil, err)
		return
	}
	r := &messaging.Result{
		Version: messaging.SchemaVersion, AttemptID: c.spec.attemptID(t, a), Worker: ev.Client,
		Outcome: ev.Outcome, Values: ev.Values, Metrics: ev.Metrics, Failure: ev.Failure, Checkpoint: ev.Checkpoint,
		Claimed: a.Claimed, Started: a.Started, Ended: c.step.now,
	}
	as := interpret(&c.spec.Definition.Spec, r)
	missing := c.spec.unlimited(ev.Metrics)
	objectives := len(c.spec.Definition.Spec.Objectives())
	answers := as.outcome == messaging.OutcomeCompleted || as.outcome == messaging.OutcomeInfeasible
	switch {
	case ev.Outcome == messaging.OutcomeCompleted && len(ev.Values) != objectives,
		ev.Outcome == messaging.OutcomePruned && len(ev.Values) != 0 && len(ev.Values) != objectives:
		err = invalidf("got %d values; want one for each of the study's objectives (%d)", len(ev.Values), objectives)
	case ev.Outcome == messaging.OutcomeCompleted && missing != nil:
		err = missing
	case a.State != study.AttemptOpen && same(t, a, r, as): // told again
	case t.rec.State.Terminal():
		err = refusef("%s", c.spec.ending(t))
	case a.State != study.AttemptOpen && !answers:
		err = refusef("client %s does not hold trial %d any more: its attempt %d has ended: %s", ev.Client, ev.Trial, a.Number, a.State)
	case as.outcome == messaging.OutcomePruned && t.rec.Stopped == nil:
		err = refusef("nobody has decided to prune trial %d: complete it without pruned", ev.Trial)
	default:
		if err = c.amend(t, ev.Point); err == nil {
			c.results.finished(r)
		}
	}
	c.step.reply(t, err)
}

// amend gives an open trial the point that its client has evaluated, if that is not the suggested
// one. The optimiser is told that point. It MUST be at the same level of the fidelity, because the
// trial's rung has decided what was promoted.
func (c *clients) amend(t *trial, raw study.Point) error {
	if raw == nil {
		return nil
	}
	point, err := c.spec.pointOf(raw)
	if err != nil {
		return err
	}
	if c.spec.samePoint(point, t.rec.Point) {
		return nil
	}
	before, _ := c.spec.space.Level(t.rec.Point)
	if after, leveled := c.spec.space.Level(point); leveled && after != before {
		return invalidf("parameters: the level of the fidelity is another one than that of trial %d", t.rec.Number)
	}
	c.tried.remove(t)
	t.rec.Suggested, t.rec.Point, t.outside = t.rec.Asked(), point, false
	t.rec.Metrics = nil // an earlier attempt has evaluated another point
	c.tried.add(t)
	c.step.touch(t)
	return nil
}

// HasCommand returns the error for a call that only studies without a command accept.
func HasCommand(spec *study.Spec) error {
	return refusef("the study has a command, so workers of the pool %q evaluate its trials: "+
		"leave spec.trial.command out of a study whose trials clients ask for", spec.Pool)
}

// same reports whether a result says what is recorded of its attempt already.
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
