package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// maxDrift is how much longer than by the leader's clock an evaluation may have taken.
const maxDrift = time.Second

// durations is how long evaluations take, those that gave an answer or were stopped early. It is what
// the engine goes by when it decides how long a slot may wait: a mean over all of them.
type durations struct {
	sum time.Duration
	n   int
}

// add adds the evaluation of an attempt whose trial was folded at a time. The worker's
// clock says how long it took, which may have been set meanwhile. So add ignores
// evaluations that end before they start, or that took longer than the leader's clock
// allows.
func (d *durations) add(a *record.Attempt, folded time.Time) {
	if a.Started.IsZero() || a.Ended.Before(a.Started) {
		return
	}
	took := a.Ended.Sub(a.Started)
	if !a.Opened.IsZero() && took > max(0, folded.Sub(a.Opened))+maxDrift {
		return
	}
	d.sum += took
	d.n++
}

// mean returns the mean; ok is false before the first evaluation has ended.
func (d *durations) mean() (mean time.Duration, ok bool) {
	if d.n == 0 {
		return 0, false
	}
	return d.sum / time.Duration(d.n), true
}
