package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// lifetime is whether the study runs, and for how long it has run.
//
// A leader adds up for how long it has run a study, and stores the sum with the status. It
// compares only times of its own clock, which go on steadily even if the clock is set. So
// neither another leader's clock nor the time without a leader counts.
type lifetime struct {
	spec *specification
	step *step

	state          study.State
	reason         string // why it is in its state, or how it fares while it runs
	started, ended time.Time
	idle           time.Duration // between its ends and the updates that resumed it
	ran            time.Duration // until from
	from           time.Time
	counted, since time.Time // see record.Status
	// unopened says that the study was loaded and is not opened yet, which its first Tick does. Until
	// then it asks for nothing and publishes nothing, and its time cannot be over: it first gets
	// what the streams have received while nobody led.
	unopened bool
}

func (l *lifetime) start(at time.Time) {
	l.state, l.started, l.from, l.counted, l.since = study.Running, at, at, at, at
}

// open begins to run a loaded study. That is stored at once: until then, nobody could tell the time
// without a leader from that for which the study runs.
func (l *lifetime) open() {
	if l.unopened = false; l.running() {
		l.since = l.from
		l.step.changed.status = true
	}
}

// load takes over what the last leader has stored. Nothing that happened since then counts.
func (l *lifetime) load(s *record.Status, at time.Time) {
	l.state, l.reason, l.started, l.ended, l.idle, l.ran = s.State, s.Reason, s.Started, s.Ended, s.Idle, s.Ran
	l.counted, l.since = s.Counted, s.Since
	l.from, l.unopened = at, true
}

func (l *lifetime) write(s *record.Status) {
	s.State, s.Reason, s.Started, s.Ended, s.Idle, s.Ran = l.state, l.reason, l.started, l.ended, l.idle, l.ran
	s.Counted, s.Since = l.counted, l.since
}

// running is false once the study has ended, until an Update resumes it.
func (l *lifetime) running() bool { return l.state == study.Running }

// say sets the text that tells users how a running study is doing, or why it has ended.
func (l *lifetime) say(reason string) {
	if l.reason != reason {
		l.reason = reason
		l.step.changed.status = true
	}
}

// end moves the study to a terminal state. The caller MUST also cancel what is open.
func (l *lifetime) end(state study.State, reason string) {
	l.count()
	l.state, l.reason, l.ended = state, clip(reason), l.step.now
	l.step.changed.status = true
}

// resume continues an ended study. The time since its end does not count against maxDuration.
func (l *lifetime) resume() {
	l.idle += l.step.now.Sub(l.ended)
	l.state, l.reason, l.ended = study.Running, "", time.Time{}
	l.from, l.since = l.step.now, l.step.now
	l.step.changed.status = true
}

func (l *lifetime) total() time.Duration {
	if !l.running() {
		return l.ran
	}
	return l.ran + max(0, l.step.now.Sub(l.from))
}

// count brings ran up to date. It MUST precede each commit of the status: the next leader adds to
// what it finds there.
func (l *lifetime) count() {
	if l.ran, l.from = l.total(), l.step.now; l.running() {
		l.counted = l.step.now
	}
}

// countAgain returns when ran should be stored though nothing else has changed; zero for never. It
// matters while trials are evaluated, and to studies with a maxDuration.
func (l *lifetime) countAgain(evaluating bool) time.Time {
	if !l.running() || !evaluating && l.spec.Definition.Spec.Budget.MaxDuration <= 0 {
		return time.Time{}
	}
	return l.from.Add(countRanEvery)
}

// deadline returns when maxDuration ends the study; zero for never.
func (l *lifetime) deadline() time.Time {
	d := time.Duration(l.spec.Definition.Spec.Budget.MaxDuration)
	if d <= 0 {
		return time.Time{}
	}
	return l.step.now.Add(d - l.total())
}

// left returns what is left of maxDuration, which is not 0.
func (l *lifetime) left() time.Duration {
	return max(0, time.Duration(l.spec.Definition.Spec.Budget.MaxDuration)-l.total())
}

// expired reports whether maxDuration has passed. It is false until the study is opened: see unopened.
func (l *lifetime) expired() bool {
	d := l.deadline()
	return !d.IsZero() && !l.step.now.Before(d) && !l.unopened
}
