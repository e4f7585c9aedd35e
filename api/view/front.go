package view

import (
	"strings"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
)

// Optimal is a trial on the front of a study with several objectives: no other completed
// trial is better in one of them without being worse in another.
type Optimal struct {
	Trial int `json:"trial"`
	// Values has one value for each objective, in the order of the study file.
	Values     []float64  `json:"values"`
	Parameters Parameters `json:"parameters"`
	// Knee says that a small gain in one objective costs much of the others from here. At
	// most one trial has it.
	Knee bool `json:"knee,omitempty"`
}

// FrontOf shows the trials on the front, the best in the first objective first; nil if the
// study has a single objective. It is never nil otherwise.
func FrontOf(spec *study.Spec, trials []record.Trial) []Optimal {
	if len(spec.Several) == 0 {
		return nil
	}
	values := make([]study.Values, len(trials))
	for i := range trials {
		values[i] = trials[i].Values
	}
	return ordered(spec.Several, values, func(i int) Optimal {
		return Optimal{Trial: trials[i].Number, Values: values[i], Parameters: Parameters(trials[i].Point)}
	})
}

// ordered returns the front of the values in order, with its knee marked. shown shows the trial of some.
func ordered(objectives []study.Objective, values []study.Values, shown func(i int) Optimal) []Optimal {
	on, knee := front.Ordered(objectives, values)
	list := make([]Optimal, len(on))
	for k, i := range on {
		list[k] = shown(i)
		list[k].Knee = i == knee
	}
	return list
}

// FromFront shows a front as a server sent it; nil if the study has a single objective.
func FromFront(s *fantasiav1.Study, trials []*fantasiav1.Trial) []Optimal {
	if len(s.GetObjectives()) == 0 {
		return nil
	}
	values := make([]study.Values, len(trials))
	for i, t := range trials {
		values[i] = t.GetValues()
	}
	return ordered(Objectives(s), values, func(i int) Optimal {
		return Optimal{Trial: int(trials[i].GetNumber()), Values: values[i], Parameters: fromStruct(trials[i].GetParameters())}
	})
}

// Objectives returns several objectives as a server sent them; nil for a single one.
func Objectives(s *fantasiav1.Study) (list []study.Objective) {
	for _, o := range s.GetObjectives() {
		list = append(list, study.Objective{
			Metric: o.GetMetric(), Direction: study.Direction(strings.ToLower(EnumName(o.GetDirection()))), Reference: o.Reference,
			Early: o.GetEarly(),
		})
	}
	return list
}

// Named formats the values of metrics: "error = 0.1, seconds = 3".
func Named(metrics []string, values []float64) string {
	parts := make([]string, min(len(metrics), len(values)))
	for i := range parts {
		parts[i] = metrics[i] + " = " + Number(values[i])
	}
	return strings.Join(parts, ", ")
}

// Numbers formats the values of all objectives.
func Numbers(values []float64) string {
	return each.Join(values, ", ", Number)
}

// Aims formats what a study optimises: "minimize error, maximize recall".
func Aims(objectives []study.Objective) string {
	return each.Join(objectives, ", ", func(o study.Objective) string { return string(o.Direction) + " " + o.Metric })
}
