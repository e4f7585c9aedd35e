package record

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Front is the size of a study's front, and how much of the space of values it dominates.
type Front struct {
	Size int `json:"size"`
	// Hypervolume is measured from the objectives' references; nil if one has none, or if there
	// are more than study.MaxVolume.
	Hypervolume *float64 `json:"hypervolume,omitempty"`
}

// Front returns the completed trials within all limits that no other of them dominates, in their
// order: of a study with one objective, those with the best value. Trials whose point is not in the
// study's space do not count.
func (s *Study) Front(trials []Trial) ([]Trial, error) {
	var inside *space.Space
	if s.SpaceVersion() > 1 {
		var err error
		if inside, err = space.New(s.Definition.Spec.Parameters, nil, nil); err != nil {
			return nil, fmt.Errorf("study %s: %w", s.ID, err)
		}
	}
	values := make([]study.Values, len(trials))
	for i := range trials {
		if t := &trials[i]; t.State == study.TrialCompleted && within(inside, t.Point) && s.Definition.Spec.Within(t.Values, t.Metrics) {
			values[i] = t.Values
		}
	}
	var list []Trial
	for _, i := range front.Of(s.Definition.Spec.Objectives(), values) {
		list = append(list, trials[i])
	}
	return list, nil
}

// within reports whether a point is in a space. Without an edit all points are, which nil stands
// for.
func within(s *space.Space, p study.Point) bool {
	if s == nil {
		return true
	}
	_, err := s.Normalize(p)
	return err == nil
}
