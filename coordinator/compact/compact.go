// Package compact keeps the records of ended trials in memory in few bytes: about a
// twelfth of what they take as Go values. Nothing is lost, except for the monotonic
// readings of times. What it packs is for this process only, and is never stored.
package compact

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Packed is a packed record. Only the Codec that made it can read it.
type Packed string

// Codec packs the records of one study. It keeps texts that many records share, such as the
// names of workers and of metrics, once. Not safe for concurrent use.
type Codec struct {
	origin time.Time // about when the study began
	texts  table[string]
	asks   table[record.Ask]
	buffer []byte
}

// How many entries the tables of a Codec have at most, and how long a text in one may be.
// What finds no place is written out in each record. So neither thousands of workers nor
// notes that differ make the tables grow without end.
const (
	maxTexts = 4096
	maxAsks  = 1024
	maxText  = 256
)

// New returns a Codec for a study. Times near origin take the fewest bytes.
func New(origin time.Time) *Codec {
	c := &Codec{
		origin: fixed(origin),
		texts:  table[string]{most: maxTexts, places: map[string]int{}},
		asks:   table[record.Ask]{most: maxAsks, places: map[record.Ask]int{}},
	}
	// The most frequent texts come first, where a place takes one byte.
	for _, s := range []study.TrialState{study.TrialCompleted, study.TrialFailed, study.TrialInfeasible, study.TrialPruned, study.TrialCancelled} {
		c.texts.place(string(s))
	}
	for _, s := range []study.AttemptState{study.AttemptSucceeded, study.AttemptFailed, study.AttemptLost, study.AttemptHandedBack, study.AttemptCancelled, study.AttemptPruned} {
		c.texts.place(string(s))
	}
	for _, o := range []messaging.Outcome{messaging.OutcomeCompleted, messaging.OutcomeFailed, messaging.OutcomeHandedBack, messaging.OutcomePruned} {
		c.texts.place(string(o))
	}
	for _, s := range []optimizer.Source{optimizer.SourceRandom, optimizer.SourceModel, optimizer.SourceFallback, optimizer.SourcePromoted} {
		c.texts.place(string(s))
	}
	return c
}

// Pack packs a record without its number, which the caller keeps.
func (c *Codec) Pack(t *record.Trial) Packed {
	w := coder{Codec: c, data: c.buffer[:0], last: c.origin}
	w.trial(t)
	c.buffer = w.data
	return Packed(w.data)
}

// Unpack restores a record. The caller MUST have set its Number.
func (c *Codec) Unpack(p Packed, t *record.Trial) {
	r := coder{Codec: c, data: []byte(p), last: c.origin, reading: true}
	r.trial(t)
}

// table numbers values that come often.
type table[K comparable] struct {
	most   int
	values []K
	places map[K]int
}

// place returns a value's place, and adds the value if it is new; false if there is no room.
func (t *table[K]) place(value K) (int, bool) {
	if i, ok := t.places[value]; ok {
		return i, true
	}
	if len(t.values) >= t.most {
		return 0, false
	}
	t.places[value] = len(t.values)
	t.values = append(t.values, value)
	return len(t.values) - 1, true
}
