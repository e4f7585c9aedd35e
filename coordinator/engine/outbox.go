package engine

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// outbox publishes assignments, and publishes them again until somebody claims them: the broker may
// have lost one, or no worker was there.
//
// Each queued attempt has a reminder at the time that its trial names as due, unless the study has
// just been loaded: then its first Tick publishes all of them. reminders are in order of time, as
// time never goes back. A reminder is skipped if its attempt has been claimed, or published again
// since.
type outbox struct {
	shared

	reminders []reminder
}

// reminder says when one attempt is due.
type reminder struct {
	trial   *trial
	attempt int
	due     time.Time
}

// current reports whether the attempt still waits for a claim and this is its
// latest reminder.
func (r reminder) current() bool {
	return r.trial.facts().state == study.TrialQueued && len(r.trial.rec.Attempts) == r.attempt && r.trial.due.Equal(r.due)
}

// remind sets when a queued trial's attempt is published again. Earlier reminders of it become
// stale.
func (o *outbox) remind(t *trial) {
	due := o.step.now.Add(o.spec.settings.Republish)
	if t.due.Equal(due) {
		return
	}
	t.due = due
	o.reminders = append(o.reminders, reminder{t, len(t.rec.Attempts), due})
}

// next drops stale reminders and returns when the first one is due; zero if none is.
func (o *outbox) next() time.Time {
	for len(o.reminders) > 0 && !o.reminders[0].current() {
		o.reminders = o.reminders[1:]
	}
	if len(o.reminders) == 0 {
		return time.Time{}
	}
	return o.reminders[0].due
}

// republish publishes again what is due. Each gets a new reminder, so the loop ends.
func (o *outbox) republish() {
	for due := o.next(); !due.IsZero() && !due.After(o.step.now); due = o.next() {
		t := o.reminders[0].trial
		o.reminders = o.reminders[1:]
		o.publish(t)
	}
}

// end forgets what was to be published: the study has ended, and so have all attempts.
func (o *outbox) end() { o.reminders, o.step.out.Publish = nil, nil }

// published restarts the wait until the attempt is published again. It also keeps the
// first time of publishing for the record's next change, since that alone is not worth
// a commit.
func (o *outbox) published(ev Published) {
	t, a := o.trials.find(ev.Attempt)
	if t != nil && !t.rec.State.Terminal() && a.Published.IsZero() && t.sent.attempt != a.Number {
		t.sent = sent{attempt: a.Number, committed: ev.Committed, published: ev.At}
	}
	if t == nil || t.rec.State != study.TrialQueued || a != t.rec.Last() {
		return
	}
	o.remind(t)
}

// publish sends a trial's last attempt to the pool, and again later unless somebody claims it.
func (o *outbox) publish(t *trial) {
	o.remind(t)
	o.step.out.Publish = append(o.step.out.Publish, o.assignment(t, t.rec.Last()))
}

// assignment is what a worker needs to evaluate an attempt. It depends on the records alone, so the
// copies that are sent again are the same.
func (o *outbox) assignment(t *trial, a *record.Attempt) *messaging.Assignment {
	spec := &o.spec.Definition.Spec
	first := o.trials.firstOf(t)
	assignment := &messaging.Assignment{
		Version:        messaging.SchemaVersion,
		AttemptID:      o.spec.attemptID(t, a),
		Pool:           spec.Pool,
		StudyName:      o.spec.Definition.Metadata.Name,
		Seed:           TrialSeed(spec.Algorithm.Seed, first),
		Parameters:     t.rec.Point,
		Objective:      spec.Objective,
		Several:        spec.Several,
		Limits:         spec.Limits,
		Run:            spec.Trial,
		ParameterOrder: spec.Active(t.rec.Point),
		Checkpoint:     t.rec.Checkpoint,
		Reached:        t.rec.Reached,
		TraceContext:   messaging.TraceContext{Traceparent: traceparent(t)},
	}
	if first != t.rec.Number {
		assignment.Configuration = first
	}
	return assignment
}

// traceparent returns the W3C trace context of a trial's root span, marked as sampled.
func traceparent(t *trial) string {
	if t.rec.TraceID == "" {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-01", t.rec.TraceID, t.rec.SpanID)
}

// TrialSeed returns the seed for a trial's program, the same in every attempt: the top
// 31 bits of SplitMix64 (Steele, Lea and Flood 2014) at the study's seed and the
// trial's number. It has 31 bits because every language and library accepts those.
func TrialSeed(study uint64, trial int) uint64 {
	z := mix(study) + uint64(trial)*golden
	return mix(z) >> 33
}

// golden is 2^64 divided by the golden ratio, SplitMix64's increment.
const golden = 0x9e3779b97f4a7c15

// mix is the finaliser of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
