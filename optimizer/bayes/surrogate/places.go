package surrogate

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Place is a point of the space with all its observations.
type Place struct {
	// Row is the first row of X at the place.
	Row int
	// Values are the completed outcomes in the objective's units, lower better.
	Values []float64
}

// Places returns the distinct points that completed at least once, in the order
// of their first observation.
func (d *Data) Places() []Place {
	byPlace := make(map[string]int, len(d.Y))
	var places []Place
	for row, y := range d.raw {
		if !d.completed[row] {
			continue
		}
		key := optimizer.KeyOf(d.X.RawRowView(row))
		i, known := byPlace[key]
		if !known {
			i = len(places)
			byPlace[key] = i
			places = append(places, Place{Row: row})
		}
		places[i].Values = append(places[i].Values, y)
	}
	return places
}

// Noise is what repeated evaluations show about the objective.
type Noise int

// The possible answers: no point was evaluated twice; all repeated evaluations agree;
// some differ.
const (
	NoiseUnknown Noise = iota
	NoiseFree
	Noisy
)

// NoiseOf reports whether re-evaluating a point gave another value.
func NoiseOf(places []Place) Noise {
	answer := NoiseUnknown
	for _, p := range places {
		if len(p.Values) < 2 {
			continue
		}
		answer = NoiseFree
		low, high := slices.Min(p.Values), slices.Max(p.Values)
		if optimizer.Differ(low, high) {
			return Noisy
		}
	}
	return answer
}
