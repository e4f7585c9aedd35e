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

// curves are those in memory: of open trials, and of those that ended a short while ago.
type curves struct {
	begun   time.Time // when the engine was made; other times count from it, in fewer bytes
	cooling []cooling // in order of time
	changed []*trial  // in this step
}

// recent is the curve of the attempt that counts, in memory.
type recent struct {
	*curve.Curve
	used time.Duration // when it last changed or its trial ended
}

// cooling is a trial that ended, or whose curve was read, and when.
type cooling struct {
	trial *trial
	since time.Duration
}

// measured adds a report of a program to its trial's curve.
func (e *Engine) measured(m *messaging.Measurement) {
	t := e.reporting(m.AttemptID)
	if t == nil || t.forgotten && e.spec.on(safetyRecall) {
		return
	}
	if metrics := finiteMetrics(m.Metrics); metrics != nil {
		if t.curve == nil || t.curve.Attempt < m.Attempt {
			t.curve = &recent{Curve: curve.New(m.Attempt)}
		}
		t.curve.Keep = append(study.MetricNames(e.spec.Definition.Spec.Objectives()), e.stopper.metric)
		if !t.curve.Add(m.Step, metrics) {
			return
		}
		e.curves.reported(t, e.step.now)
		e.noteEarly(t, metrics)
	}
	// The rule is told too of values that a curve cannot hold.
	if verdict := e.stopper.report(m); verdict.Stop {
		e.prune(t, m, verdict.Reason)
	}
}

// reporting returns the trial of an attempt's reports; nil if they do not count. A
// trial has one curve. It is that of the attempt that answered. Until one has, it is
// that of the latest attempt that has reported anything.
func (e *Engine) reporting(id messaging.AttemptID) *trial {
	t, _ := e.trials.find(id)
	switch {
	case t == nil:
		return nil
	case t.curve != nil && id.Attempt < t.curve.Attempt && e.spec.on(safetyCurve):
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
	if t := e.trials.numbered(number); t != nil && t.forgotten {
		if t.forgotten = false; c != nil {
			t.curve = &recent{Curve: c}
		}
		e.curves.rest(t, e.step.now)
		e.stopper.recount(number, t.curve)
	}
}

// Curve returns what a trial's program has reported at each step, by metric. It
// returns nil if nothing was reported, or if the curve is not in memory: see
// Forgotten.
func (e *Engine) Curve(number int) []curve.Series {
	t := e.trials.numbered(number)
	if t == nil || t.curve == nil {
		return nil
	}
	return t.curve.Series()
}

// reported notes that a trial's curve has changed.
func (c *curves) reported(t *trial, now time.Time) {
	if t.curve.used = now.Sub(c.begun); !t.reported {
		t.reported = true
		c.changed = append(c.changed, t)
	}
}

// rest keeps a trial's curve for a while after its end.
func (c *curves) rest(t *trial, now time.Time) {
	age := now.Sub(c.begun)
	if t.curve != nil {
		t.curve.used = age
	}
	c.cooling = append(c.cooling, cooling{t, age})
}

// cool drops the curves of trials that ended a while ago.
func (c *curves) cool(now time.Time) {
	for len(c.cooling) > 0 {
		t, since := c.cooling[0].trial, c.cooling[0].since
		if t.curve != nil {
			since = max(since, t.curve.used)
		}
		if ended := t.facts().state.Terminal(); ended && now.Sub(c.begun)-since < curveRest {
			return
		} else if ended {
			t.curve, t.forgotten = nil, true
		} // else endTrial adds it again
		c.cooling = c.cooling[1:]
	}
}

// flush returns the changes of this step.
func (c *curves) flush() []curve.Change {
	var changes []curve.Change
	for _, t := range c.changed {
		t.reported = false
		if change, ok := t.curve.Changes(t.facts().number); ok {
			changes = append(changes, change)
		}
	}
	c.changed = nil
	return changes
}
