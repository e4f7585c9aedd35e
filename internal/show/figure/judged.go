package figure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
)

const (
	// mostSampled is how many trials' curves are read for the pages of a study: reading each takes time.
	mostSampled = 120
	// mostUnfinished bounds the trials that a page offers to finish.
	mostUnfinished = 5
)

// Judged says what a model of curves tells of the trials of a study, in the words of fantasia study diagnose; nil if it tells nothing.
// read is how many trials' curves it was told, of so many.
func Judged(j *diagnosis.Judged, name string, read, of int) []Figure {
	f := Figure{ID: "judged", Title: "Early stopping, judged by a model", Broad: true, Help: "What the model of curves, which the rule " +
		"model asks, says of the trials: whether its bands can be relied on, how near the best trial came to being stopped, and which " +
		"stopped trials to run to their ends."}
	unfinished := 0
	for _, s := range j.Statements(name) {
		if s.Name == "unfinished" {
			if unfinished++; unfinished > mostUnfinished {
				continue
			}
		}
		f.Lines = append(f.Lines, strings.ToUpper(s.Name[:1])+s.Name[1:]+": "+s.Text)
	}
	if len(f.Lines) == 0 {
		return nil
	}
	if more := unfinished - mostUnfinished; more > 0 {
		f.Lines = append(f.Lines, fmt.Sprintf("So are %d more, which fantasia study diagnose %s names.", more, name))
	}
	if read < of {
		f.Lines = append(f.Lines, fmt.Sprintf("This is by the curves of %d of %d trials; fantasia study diagnose %s reads all of them.", read, of,
			name))
	}
	return []Figure{f}
}

// Sample returns the places whose curves are read for the pages of a study: all or, of many, an even share of them and the place of
// the best trial, which is below 0 if there is none.
func Sample(all []int, best int) []int {
	if len(all) <= mostSampled {
		return all
	}
	var chosen []int
	for k := range mostSampled {
		chosen = append(chosen, all[k*len(all)/mostSampled])
	}
	if best >= 0 && !slices.Contains(chosen, best) {
		chosen = append(chosen, best)
	}
	return chosen
}

// WithCurves returns trials as a diagnosis takes them, with what they reported.
func WithCurves(a Axes, trials []*Trial, reported map[int][]view.Curve) view.Trials {
	return withCurves{viewed{a, trials}, reported}
}

// withCurves are trials with what they reported, by number.
type withCurves struct {
	viewed
	reported map[int][]view.Curve
}

// At implements view.Trials.
func (w withCurves) At(i int) view.Trial {
	t := w.viewed.At(i)
	t.Measurements = w.reported[t.Trial]
	return t
}
