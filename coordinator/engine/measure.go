package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// curveRest is how long the engine keeps the curve of an ended trial in memory, since
// the program's last reports may be read after its result.
const curveRest = time.Minute

// curveOf holds a trial's curve in memory.
type curveOf struct {
	// curve is the curve of the attempt that counts; nil if nothing was reported, or
	// if it is forgotten.
	curve *curve.Curve
	// forgotten says that the ledger may hold a curve that is not in memory.
	forgotten bool
	// at is when the curve last changed.
	at      time.Time
	changed bool // in the engine's list of changes
}

// measured adds a report of a program to its trial's curve.
func (e *Engine) measured(m *messaging.Measurement) {
	t := e.reporting(m.AttemptID)
	if t == nil || t.forgotten && e.on(safetyRecall) {
		return
	}
	if t.curve == nil || t.curve.Attempt < m.Attempt {
		t.curve = curve.New(m.Attempt)
	}
	if !t.curve.Add(m.Step, finiteMetrics(m.Metrics)) {
		return
	}
	t.at = e.now
	if !t.curveOf.changed {
		t.curveOf.changed = true
		e.dirty.curves = append(e.dirty.curves, t)
	}
	e.judge(t, m)
}

// reporting returns the trial of an attempt's reports; nil if they do not count. A
// trial has one curve. It is that of the attempt that answered. Until one has, it is
// that of the latest attempt that has reported anything.
func (e *Engine) reporting(id messaging.AttemptID) *trial {
	t, _ := e.find(id)
	switch {
	case t == nil:
		return nil
	case t.curve != nil && id.Attempt < t.curve.Attempt && e.on(safetyCurve):
		return nil
	case t.rec.State.Terminal():
		for i := range t.rec.Attempts {
			if a := &t.rec.Attempts[i]; a.State == study.AttemptSucceeded && a.Number != id.Attempt {
				return nil
			}
		}
	}
	return t
}

// Forgotten reports whether a report of an attempt counts but its curve is not in
// memory. If so, send Recalled BEFORE Measured.
func (e *Engine) Forgotten(id messaging.AttemptID) bool {
	t := e.reporting(id)
	return t != nil && t.forgotten
}

// recalled restores a curve from the ledger.
func (e *Engine) recalled(number int, c *curve.Curve) {
	if t := e.numbered(number); t != nil && t.forgotten {
		t.curve, t.forgotten, t.at = c, false, e.now
		e.cooling = append(e.cooling, t)
		e.recount(t)
	}
}

// cool drops the curves of trials that ended a while ago.
func (e *Engine) cool() {
	for len(e.cooling) > 0 {
		t := e.cooling[0]
		if ended := t.rec.State.Terminal(); ended && e.now.Sub(t.at) < curveRest {
			return
		} else if ended {
			t.curve, t.forgotten = nil, true
		} // else endTrial adds it again
		e.cooling = e.cooling[1:]
	}
}

// Curve returns what a trial's program has reported at each step, by metric. It
// returns nil if nothing was reported, or if the curve is not in memory: see
// Forgotten.
func (e *Engine) Curve(number int) []curve.Series {
	t := e.numbered(number)
	if t == nil || t.curve == nil {
		return nil
	}
	return t.curve.Series()
}

// curves returns the changes of curves in this step.
func (e *Engine) curves() []curve.Change {
	var changes []curve.Change
	for _, t := range e.dirty.curves {
		t.curveOf.changed = false
		if change, ok := t.curve.Changes(t.rec.Number); ok {
			changes = append(changes, change)
		}
	}
	return changes
}
