package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
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
