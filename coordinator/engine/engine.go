// Package engine implements one study as a pure state machine: events in, effects
// out. It reads no clock, starts no goroutine, does no I/O and uses no randomness of
// its own. The caller passes the time with each event, and a source of ids at
// construction.
//
// The caller MUST commit an Output's records to the ledger, in one transaction with
// the cursors of the entries that led to it, BEFORE it carries out any of the
// Output's effects. An Engine is not safe for concurrent use.
package engine

import (
	"cmp"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// IDs makes the ids that the engine needs. Tests use predictable ones.
type IDs interface {
	// Nonce returns a text that is unique to one attempt.
	Nonce() string
	// Trace and Span return a W3C trace id (32 hex digits) and span id (16).
	Trace() string
	Span() string
}

// Engine is one study. Not safe for concurrent use.
//
// It is put together from parts, each with the state that only its own methods change; the comment of
// a part's type says what holds of that state. Engine itself passes each event to the part that it is
// for, ends the study, and writes the Output.
type Engine struct {
	// What it was given, and what the event leads to.
	spec specification
	step step

	// What it knows: of itself, of its trials, and what it has learnt from those that ended.
	life        lifetime
	trials      trials
	tried       tried
	ladder      ladder
	rule        rule
	curves      curves
	history     history
	evaluations durations

	// Who evaluates, and how the evaluations go on and end.
	health   health
	seekers  seekers
	slots    slots
	outbox   outbox
	pruning  pruning
	judging  judging
	attempts attempts
	results  results

	// Where new trials come from.
	suggestions suggestions
	demand      demand
	promotion   promotion
	clients     clients
	users       users
}

// shared is what every part of the engine works with, beside the parts that it names itself.
type shared struct {
	spec   *specification
	step   *step
	trials *trials
}

// New starts a study. The Output holds its first status and the first request to its
// optimiser. The error says why the study's space cannot be compiled.
func New(spec record.Study, ids IDs, settings Settings, at time.Time) (*Engine, Output, error) {
	e, err := construct(spec, ids, settings, at)
	if err != nil {
		return nil, Output{}, err
	}
	e.life.start(at)
	e.step.changed.status = true
	return e, e.finish(), nil
}

// construct returns an engine without trials, with its parts put together. The pointers between
// them say who may tell whom: a part only calls those that were made before it, except for the rule
// and the curves, which call nobody.
func construct(spec record.Study, ids IDs, settings Settings, at time.Time) (*Engine, error) {
	e := &Engine{
		spec: specification{ids: ids, settings: settings.withDefaults(), switches: &switches{}},
		step: step{now: at}, curves: curves{begun: at},
	}
	if err := e.spec.set(spec); err != nil {
		return nil, err
	}
	var err error
	if e.rule, err = newRule(&spec, e.spec.settings); err != nil {
		return nil, err
	}
	all := shared{&e.spec, &e.step, &e.trials}
	e.life = lifetime{spec: &e.spec, step: &e.step}
	e.trials = trials{spec: &e.spec, step: &e.step, requests: map[string]int{}}
	e.history = history{shared: all, tried: &e.tried, ladder: &e.ladder, rule: &e.rule, curves: &e.curves}
	e.history.clear()
	e.health = health{step: &e.step, workers: map[string]*workerHealth{}}
	e.slots = slots{spec: &e.spec, trials: &e.trials, seekers: &e.seekers, evaluations: &e.evaluations}
	e.outbox = outbox{shared: all}
	e.pruning = pruning{shared: all, history: &e.history, rule: &e.rule, curves: &e.curves}
	e.judging = judging{pruning: &e.pruning}
	e.attempts = attempts{shared: all, history: &e.history, pruning: &e.pruning, outbox: &e.outbox, slots: &e.slots, seekers: &e.seekers}
	e.results = results{
		shared: all, history: &e.history, attempts: &e.attempts, pruning: &e.pruning,
		health: &e.health, slots: &e.slots, evaluations: &e.evaluations,
	}
	e.suggestions = suggestions{
		shared: all, life: &e.life, tried: &e.tried, ladder: &e.ladder, history: &e.history, attempts: &e.attempts,
		evaluations: &e.evaluations, judging: &e.judging,
	}
	e.demand = demand{shared: all, slots: &e.slots, suggestions: &e.suggestions, evaluations: &e.evaluations}
	e.promotion = promotion{shared: all, ladder: &e.ladder, slots: &e.slots, suggestions: &e.suggestions, attempts: &e.attempts}
	e.clients = clients{shared: all, tried: &e.tried, results: &e.results}
	e.users = users{
		shared: all, life: &e.life, ladder: &e.ladder, history: &e.history, attempts: &e.attempts, suggestions: &e.suggestions,
	}
	return e, nil
}

// Step applies one event and returns what follows from it. Its cost does not grow
// with the number of ended trials.
func (e *Engine) Step(ev Event) Output {
	e.step.advance(ev.when())
	switch ev := ev.(type) {
	case Tick:
		e.tick()
	case Capacity:
		e.slots.set(ev)
	case Claimed:
		e.attempts.claimed(ev.Claim)
	case Spoiled:
		e.attempts.spoiled(ev.Attempt)
	case Alive:
		e.attempts.alive(&ev)
	case Lost:
		e.attempts.lost(ev.Attempt, ev.Reason)
	case Finished:
		e.results.finished(ev.Result)
	case Measured:
		e.judging.measured(ev.Measurement)
	case Judged:
		e.judging.judged(ev)
	case Recalled:
		e.pruning.recalled(ev.Trial, ev.Curve)
	case Suggested:
		e.suggestions.suggested(ev)
	case Published:
		e.outbox.published(ev)
	case Withdrawn:
		// Nothing to do: the attempt has ended. If a worker's claim came first, the
		// worker is told when that claim is read.
	case Recommended:
		e.history.recommend(ev.Recommendation)
	case Seek:
		if e.spec.byClients() && ev.Client != "" {
			e.seekers.set(ev.Client, ev.Want)
		}
	case Told:
		e.clients.ended(ev)
	case Enqueue:
		e.enqueue(ev)
	case Add:
		e.users.add(ev)
	case CancelTrial:
		e.users.cancel(ev)
	case Annotate:
		e.users.annotate(ev)
	case Stop:
		if e.running() {
			e.end(study.Stopped, cmp.Or(ev.Reason, "stopped"))
		}
	case Resume:
		e.goOn()
	case Update:
		e.update(ev.Study)
	case HandBackAll:
		e.attempts.handBackAll()
	}
	return e.finish()
}

// finish ends a step. The verdict comes first, so that a study that has reached its end makes no
// more trials, and again after refill.
func (e *Engine) finish() Output {
	e.endIfDue()
	e.refill()
	e.curves.cool(e.step.now)
	return e.flush()
}

// refill hands out trials, and makes the new ones that are wanted. The order is who gets a free slot
// first: trials that wait for another attempt, then those that users want, then promoted ones, then
// new configurations.
func (e *Engine) refill() {
	if e.life.unopened || !e.running() {
		return
	}
	e.seekers.count(&e.trials)
	e.attempts.handOut()
	e.promotion.promote()
	e.demand.serve()
	e.judging.ask(func() *optimizer.Problem { return e.suggestions.problem(e.suggestions.pendingPoints()) })
	e.endIfDue() // the space may be exhausted now, with no trial open
}

// flush returns the step's Output. Whatever the step does MUST come before: it empties the step.
func (e *Engine) flush() Output {
	out := &e.step.out
	if e.step.changed.status {
		e.life.count()
		out.Status = new(e.Status())
	}
	if e.step.changed.model {
		out.Model = new(e.suggestions.model)
	}
	if e.step.changed.study {
		out.Study = new(e.spec.Study)
	}
	if e.spec.byClients() { // they are told by answers, and everything else is for workers
		out.Publish, out.Withdraw, out.Cancels, out.Avoids, out.Receipts = nil, nil, nil, nil, nil
	}
	for _, t := range e.step.trials {
		e.trials.weigh(t)
	}
	out.Curves = e.curves.flush()
	out.Wake = e.wake()
	return e.step.end()
}

// wake returns when the next Tick would do something; zero for never.
func (e *Engine) wake() time.Time {
	if !e.running() {
		return time.Time{}
	}
	if e.life.unopened {
		return e.step.now
	}
	wake := earliest(e.life.deadline(), e.life.countAgain(e.trials.counts.Running > 0))
	return earliest(earliest(wake, e.outbox.next()), e.demand.wake())
}

func (e *Engine) running() bool { return e.life.running() }

// tick lets time pass: it opens a loaded study, stores from time to time how long the study has
// run, and publishes again what nobody has claimed. The verdict comes before the latter, so that a
// study whose time is over publishes nothing.
func (e *Engine) tick() {
	if e.life.unopened {
		e.reopen()
		return
	}
	if at := e.life.countAgain(e.trials.counts.Running > 0); e.running() && !at.IsZero() && !e.step.now.Before(at) {
		e.step.changed.status = true
	}
	if e.endIfDue(); e.running() && e.spec.on(safetyOutbox) {
		e.outbox.republish()
	}
}
