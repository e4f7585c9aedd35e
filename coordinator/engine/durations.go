package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// maxDrift is how much longer than by the leader's clock an evaluation may have taken.
const maxDrift = time.Second

// durations is how long evaluations take, those that gave an answer or were stopped early. It is what
// the engine goes by when it decides how long a slot may wait: a mean over all of them.
type durations struct {
	sum time.Duration
	n   int
}

// add adds the evaluation of an attempt whose trial was folded at a time, if it is known how long it took.
func (d *durations) add(a *record.Attempt, folded time.Time) {
	if took, ok := evaluationTook(a, folded); ok {
		d.sum += took
		d.n++
	}
}

// evaluationTook returns how long an attempt's evaluation took, whose trial was folded at a time. The
// worker's clock says that, which may have been set meanwhile. So ok is false for evaluations that end
// before they start, or that took longer than the leader's clock allows.
func evaluationTook(a *record.Attempt, folded time.Time) (took time.Duration, ok bool) {
	if a.Started.IsZero() || a.Ended.Before(a.Started) {
		return 0, false
	}
	took = a.Ended.Sub(a.Started)
	return took, a.Opened.IsZero() || took <= max(0, folded.Sub(a.Opened))+maxDrift
}

// programTook returns how long the program of an attempt took, apart from what a Job waits for; 0 if that is
// not known. It follows from the trial's record alone.
func programTook(a *record.Attempt, folded time.Time) time.Duration {
	took, ok := evaluationTook(a, folded)
	if !ok {
		return 0
	}
	for _, p := range a.Phases() {
		if p.Name == messaging.PhaseRun {
			return p.End.Sub(p.Start)
		}
	}
	return took
}

// running returns how long the program of a trial's last attempt has run at a time, to a millisecond; 0 if it does not run, or if
// that is not known. It may have run for longer, by the time until the leader heard of it. In a job the program may
// start later than the attempt, and its worker says when.
func running(t *record.Trial, now time.Time) time.Duration {
	a := t.Last()
	if a == nil || a.State != study.AttemptOpen {
		return 0
	}
	begun := a.Started
	if a.InJob() {
		begun = a.Begun
	}
	if begun.IsZero() {
		return 0
	}
	return max(0, now.Sub(begun).Truncate(time.Millisecond))
}

// mean returns the mean; ok is false before the first evaluation has ended.
func (d *durations) mean() (mean time.Duration, ok bool) {
	if d.n == 0 {
		return 0, false
	}
	return d.sum / time.Duration(d.n), true
}
