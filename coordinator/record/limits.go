package record

import (
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/study"
)

// Limits says how the completed trials of a study stand to its limits. It MUST NOT be changed
// in place.
type Limits struct {
	// Within is how many are within all limits.
	Within int `json:"within"`
	// Each is in the study's order.
	Each []LimitTally `json:"each"`
}

// LimitTally counts the completed trials within one limit.
type LimitTally struct {
	Met int `json:"met"`
	// Least is the smallest excess over the limit, not positive if a trial is within it; nil if
	// none is known.
	Least *float64 `json:"least,omitempty"`
}

// With returns the tally after another completed trial.
func (l *Limits) With(excess []float64) *Limits {
	next := &Limits{Each: make([]LimitTally, len(excess))}
	if l != nil {
		next.Within = l.Within
		copy(next.Each, l.Each)
	}
	if study.Within(excess) {
		next.Within++
	}
	for i, e := range excess {
		t := &next.Each[i]
		if e <= 0 {
			t.Met++
		}
		if !math.IsNaN(e) && (t.Least == nil || e < *t.Least) {
			t.Least = &e
		}
	}
	return next
}

// Hardest returns the index of the limit that the fewest trials are within: of equal ones the
// one by which they miss by the most, as a share of the bound.
func (l *Limits) Hardest(limits []study.Limit) int {
	hardest := 0
	for i := range l.Each {
		a, b := &l.Each[i], &l.Each[hardest]
		if a.Met < b.Met || a.Met == b.Met && a.miss(&limits[i]) > b.miss(&limits[hardest]) {
			hardest = i
		}
	}
	return hardest
}

// miss returns the least excess as a share of the bound, so that limits of different units compare;
// of the excess itself if the bound is 0.
func (t *LimitTally) miss(limit *study.Limit) float64 {
	if t.Least == nil {
		return math.Inf(1)
	}
	scale := math.Abs(limit.Bound())
	if scale == 0 {
		scale = 1
	}
	return *t.Least / scale
}

// Unmet tells people that no completed trial of the study is within all limits, and which limit
// is the hard one; "" if a trial is, or if none has completed.
func (s *Status) Unmet(spec *study.Spec) string {
	l, completed := s.Limits, s.Counts.Completed
	if l == nil || l.Within > 0 || len(l.Each) != len(spec.Limits) || completed == 0 {
		return ""
	}
	k := l.Hardest(spec.Limits)
	limit, tally := &spec.Limits[k], &l.Each[k]
	text := fmt.Sprintf("no trial is within all limits: %d of %d meet %s", tally.Met, completed, limit)
	switch {
	case tally.Met > 0:
		return text
	case tally.Least == nil:
		return text + ", and none has a finite value of it"
	default:
		return text + ", and the nearest has " + study.Format(limit.At(*tally.Least))
	}
}
