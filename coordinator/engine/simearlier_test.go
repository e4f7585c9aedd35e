package engine

import (
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// learns gives some worlds a study that learns from an earlier one, whose trials say how long they took and what they cost. Each
// leader MUST tell the optimiser the same of it.
func (w *world) learns() {
	if w.seed%2 == 0 {
		return
	}
	w.edit(func(s *study.Spec) {
		s.LearnFrom = []study.Earlier{{Study: "march", Direction: study.Maximize, Trials: []study.EarlierTrial{
			{Parameters: map[string]any{"x": 0.25}, Value: 2, Seconds: 0.1 + 0.2, Cost: 1.5},
			{Parameters: map[string]any{"x": 0.5}, Value: 3},
			{Parameters: map[string]any{"x": 0.75}, Value: 1, Seconds: 1e-3},
		}}}
	})
	w.check.earlier = []optimizer.Earlier{{
		Name: "march", Points: []study.Point{{"x": 0.25}, {"x": 0.5}, {"x": 0.75}}, Costs: []float64{-2, -3, -1},
		Seconds: []float64{0.1 + 0.2, 0, 1e-3}, Spent: []float64{1.5, 0, 0},
	}}
}
