package optimizer

import (
	"math"
	"reflect"

	"github.com/fantasia-hpo/fantasia/study"
)

// packFrom is the number of parameters from which a point is packed: the map of a smaller one is small.
const packFrom = 16

// Packed is a point in a small part of the memory that its map takes. Many points share the names.
type Packed struct {
	names []string
	kinds []kind   // of the value of each name
	words []uint64 // the value of each name, or its index in others
	// others are the values that are no numbers.
	others []any
}

// kind is how a value is packed.
type kind byte

const (
	inactive kind = iota // the point has no such parameter
	float
	whole
	other
)

// Pack returns the observation with its point packed if that is worth it. names are those of all parameters,
// which the observation keeps.
func (o Observation) Pack(names []string) Observation {
	if o.Packed != nil || len(o.Point) < packFrom {
		return o
	}
	p := &Packed{names: names, kinds: make([]kind, len(names)), words: make([]uint64, len(names))}
	found := 0
	for i, name := range names {
		v, ok := o.Point[name]
		if !ok {
			continue
		}
		found++
		switch v := v.(type) {
		case float64:
			p.kinds[i], p.words[i] = float, math.Float64bits(v)
		case int64:
			p.kinds[i], p.words[i] = whole, uint64(v) //nolint:gosec // At turns it back
		default:
			p.kinds[i], p.words[i] = other, uint64(len(p.others))
			p.others = append(p.others, v)
		}
	}
	if found == len(o.Point) { // else it is of another space
		o.Point, o.Packed = nil, p
	}
	return o
}

// At returns the point. The caller MUST NOT change it.
func (o *Observation) At() study.Point {
	if o.Packed == nil {
		return o.Point
	}
	p := make(study.Point, len(o.Packed.names))
	for i, name := range o.Packed.names {
		switch word := o.Packed.words[i]; o.Packed.kinds[i] {
		case float:
			p[name] = math.Float64frombits(word)
		case whole:
			p[name] = int64(word) //nolint:gosec // it was one
		case other:
			p[name] = o.Packed.others[word]
		}
	}
	return p
}

// Same reports whether two observations have the same point, by where it is kept. Nobody may change a point.
func (o *Observation) Same(as *Observation) bool {
	if o.Packed != nil || as.Packed != nil {
		return o.Packed == as.Packed
	}
	return reflect.ValueOf(o.Point).Pointer() == reflect.ValueOf(as.Point).Pointer()
}
