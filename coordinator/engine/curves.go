package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// curveRest is how long the engine keeps the curve of an ended trial in memory, since
// the program's last reports may be read after its result.
const curveRest = time.Minute

// curves are those in memory: of open trials, and of those that ended a short while ago. The ledger
// has all of them.
//
// A trial whose curve may be in the ledger and is not here is forgotten. Until Recalled brings it
// back, reports MUST NOT be added to it: they would begin a new curve, which replaces the stored
// one.
type curves struct {
	begun   time.Time // when the engine was made; other times count from it, in fewer bytes
	cooling []cooling // in order of time
	changed []*trial  // in this step
	bytes   int64     // of the curves, as of the last flush
}

// recent is the curve of the attempt that counts, in memory.
type recent struct {
	*curve.Curve
	used  time.Duration // when it last changed or its trial ended
	bytes int64         // what it counts of curves.bytes
}

// cooling is a trial that ended, or whose curve was read, and when.
type cooling struct {
	trial *trial
	since time.Duration
}

// add adds a report to its trial's curve, and reports whether the curve has changed. The first report
// of a later attempt begins another curve: a trial's curve is that of one attempt. keep names metrics
// that a long curve does not drop.
func (c *curves) add(t *trial, m *messaging.Measurement, metrics map[string]float64, keep []string, now time.Time) bool {
	if t.curve == nil || t.curve.Attempt < m.Attempt {
		c.put(t, curve.New(m.Attempt))
	}
	t.curve.Keep = keep
	if !t.curve.Add(m.Step, metrics) {
		return false
	}
	if t.curve.used = now.Sub(c.begun); !t.reported {
		t.reported = true
		c.changed = append(c.changed, t)
	}
	return true
}

// put replaces a trial's curve in memory; nil forgets it.
func (c *curves) put(t *trial, with *curve.Curve) {
	if t.curve != nil {
		c.bytes -= t.curve.bytes
	}
	if t.curve = nil; with != nil {
		t.curve = &recent{Curve: with}
	}
}

// weigh counts the bytes of a trial's curve anew.
func (c *curves) weigh(t *trial) {
	n := t.curve.Bytes()
	c.bytes += n - t.curve.bytes
	t.curve.bytes = n
}

// recall brings back a curve from the ledger; it is nil if the ledger has none.
func (c *curves) recall(t *trial, stored *curve.Curve, now time.Time) {
	if t.forgotten = false; stored != nil {
		c.put(t, stored)
		c.weigh(t)
	}
	c.rest(t, now)
}

// rest keeps the curve of a trial that has just ended, or that was recalled, for curveRest.
func (c *curves) rest(t *trial, now time.Time) {
	age := now.Sub(c.begun)
	if t.curve != nil {
		t.curve.used = age
	}
	c.cooling = append(c.cooling, cooling{t, age})
}

// cool forgets the curves that have rested long enough since they last changed. cooling is in order
// of time, so the first one that has to wait ends the search.
func (c *curves) cool(now time.Time) {
	for len(c.cooling) > 0 {
		t, since := c.cooling[0].trial, c.cooling[0].since
		if t.curve != nil {
			since = max(since, t.curve.used)
		}
		if ended := t.facts().state.Terminal(); ended && now.Sub(c.begun)-since < curveRest {
			return
		} else if ended {
			c.put(t, nil)
			t.forgotten = true
		} // an open trial: rest adds it again when it ends
		c.cooling = c.cooling[1:]
	}
}

// flush returns what has changed in this step. The caller MUST NOT drop it: a curve's next change
// begins where this one ends.
func (c *curves) flush() []curve.Change {
	var changes []curve.Change
	for _, t := range c.changed {
		t.reported = false
		c.weigh(t)
		if change, ok := t.curve.Changes(t.facts().number); ok {
			changes = append(changes, change)
		}
	}
	c.changed = nil
	return changes
}
