package transfer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// worthNaming is the least share of a prediction that a source must have for people to be told of it.
const worthNaming = 0.25

// Weighted are sources with the weights that a model gives them. A nil one has none.
type Weighted struct {
	Sources Sources
	Weights []float64
}

// Share is the part that a source has in the prediction of a point.
type Share struct {
	Source string
	// Of is the source's share of all that moves the prediction away from the mean of the outcomes.
	Of float64
	// Reversed means that the source counts upside down: it calls the point bad.
	Reversed bool
}

// Shares returns which sources speak for the place x, where the model predicts mean, the largest share first. Each source moves
// the prediction by its weight times its own mean; the rest is what the model learnt from the new study. A source's share is its
// move, divided by the sum of the sizes of all moves and of the rest. Sources with less than a quarter are left out, and so
// are those that speak against the place.
func (w *Weighted) Shares(x []float64, mean float64) (list []Share) {
	if w == nil {
		return nil
	}
	moves := w.Sources.Values(mat.NewDense(1, len(x), slices.Clone(x))).RawRowView(0)
	rest, size := mean, 0.
	for s := range moves {
		moves[s] *= w.Weights[s]
		rest -= moves[s]
		size += math.Abs(moves[s])
	}
	size += math.Abs(rest)
	for s, move := range moves {
		if of := -move / size; of >= worthNaming { // lower is better
			list = append(list, Share{w.Sources[s].Name, of, w.Weights[s] < 0})
		}
	}
	slices.SortStableFunc(list, func(a, b Share) int { return cmp.Compare(b.Of, a.Of) })
	return list
}

// Note tells people which sources speak for the place x, where the model predicts mean; "" if none does.
func (w *Weighted) Note(x []float64, mean float64) string {
	var names []string
	for _, s := range w.Shares(x, mean) {
		reversed := ""
		if s.Reversed {
			reversed = " upside down"
		}
		names = append(names, fmt.Sprintf("%s%s (%.0f%%)", s.Source, reversed, 100*s.Of))
	}
	if names == nil {
		return ""
	}
	return "; the prediction rests on earlier studies: " + strings.Join(names, ", ")
}
