package optimizer

import (
	"encoding/binary"
	"maps"
	"math"

	"github.com/fantasia-hpo/fantasia/study"
)

// taken records the points that a suggestion must not repeat, by their coordinates in
// the unit cube, which are quicker to compare than Space.Key and equivalent.
type taken struct {
	encoding *Encoding
	base     map[string]bool // shared with other views; never changed
	pending  map[string]bool // those of base that are pending; likewise
	added    map[string]bool
}

// newTaken holds the pending points of a problem and, if the space is finite, the
// observed ones. In a continuum an observed point may be evaluated again: two
// measurements of a noisy objective tell more than one.
func newTaken(p *Problem, encoding *Encoding) *taken {
	t := &taken{encoding: encoding, base: make(map[string]bool, len(p.Pending)), added: map[string]bool{}}
	for _, pending := range p.Pending {
		t.base[KeyOf(encoding.Encode(pending.Point))] = true
	}
	t.pending = maps.Clone(t.base)
	if encoding.Discrete() {
		for _, observed := range p.Observations {
			t.base[KeyOf(encoding.Encode(observed.At()))] = true
		}
		for _, other := range p.Taken {
			t.base[KeyOf(encoding.Encode(other.At()))] = true
		}
	}
	return t
}

// KeyOf returns the coordinates of a point as a key of maps.
func KeyOf(x []float64) string {
	key := make([]byte, 0, 8*len(x))
	for _, u := range x {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(u))
	}
	return string(key)
}

func (t *taken) has(p study.Point) bool { return t.at(t.encoding.Encode(p)) }

// at is has for the coordinates of a point.
func (t *taken) at(x []float64) bool { return t.key(KeyOf(x)) }

// key is has for the key of a point.
func (t *taken) key(key string) bool { return t.base[key] || t.added[key] }

func (t *taken) add(p study.Point) { t.added[KeyOf(t.encoding.Encode(p))] = true }

// fork returns a view that starts as a copy of t and grows by itself.
func (t *taken) fork() *taken {
	return &taken{encoding: t.encoding, base: t.base, pending: t.pending, added: maps.Clone(t.added)}
}
