package figure

import (
	"cmp"
	"math"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
)

// Compared is how a study did, beside others.
type Compared struct {
	// Name tells it from the others: its name, or its directory.
	Name      string      `json:"name"`
	Study     string      `json:"study"`
	State     study.State `json:"state"`
	Algorithm string      `json:"algorithm"`
	// Evaluations is how many have ended, and Seconds the time until the last of them
	// counted.
	Evaluations int                  `json:"evaluations"`
	Seconds     float64              `json:"seconds"`
	Best        *view.Best           `json:"best"`
	Recommended *view.Recommendation `json:"recommended"`
	// FrontSize is how many trials are on the front of several objectives, and Hypervolume is
	// measured from the references of Comparison.Objectives; nil of one objective.
	FrontSize   *int     `json:"frontSize,omitempty"`
	Hypervolume *float64 `json:"hypervolume,omitempty"`
	// Reached is when it was first as good as Comparison.Level; nil if it never was.
	Reached *Improvement `json:"reached"`
	// Improvements are the evaluations with a better value than all before.
	Improvements []Improvement `json:"improvements"`
}

// Improvement is an evaluation with a better value than all before.
type Improvement struct {
	Evaluation int     `json:"evaluation"`
	Seconds    float64 `json:"seconds"`
	Value      float64 `json:"value"`
	Trial      int     `json:"trial"`
}

// Comparison compares studies of the same objective or objectives.
type Comparison struct {
	// Metric is the objective's; of several objectives, "hypervolume", which is maximised.
	Metric    string          `json:"metric"`
	Direction study.Direction `json:"direction"`
	// Objectives are several objectives, with the references from which the hypervolume of all
	// studies is measured, if one has values; nil of one objective.
	Objectives []study.Objective `json:"objectives,omitempty"`
	// Level is the best value that every study has reached; nil if one has no value.
	Level   *float64   `json:"level"`
	Studies []Compared `json:"studies"`
}

// Improvements returns the evaluations with a better value than all before, and the seconds
// until the last evaluation counted.
func (s *Study) Improvements() (list []Improvement, seconds float64) {
	return s.improvements(s.Direction(), func(_ int, t *Trial) float64 {
		if !t.Counts() {
			return math.NaN()
		}
		return t.Value
	})
}

// Growth returns the evaluations that enlarged the hypervolume, measured from a reference, and
// the seconds until the last evaluation counted.
func (s *Study) Growth(reference study.Values) (list []Improvement, seconds float64) {
	all := values(s.Ended())
	volumes := front.Volumes(s.Spec.Several, all, reference)
	return s.improvements(study.Maximize, func(i int, _ *Trial) float64 {
		if all[i] == nil {
			return math.NaN()
		}
		return volumes[i]
	})
}

// Found returns the values of the trials that count, in the order in which they ended.
func (s *Study) Found() []study.Values { return values(s.Ended()) }

// improvements returns the evaluations with a better value than all before. NaN does not count.
func (s *Study) improvements(d study.Direction, value func(i int, t *Trial) float64) (list []Improvement, seconds float64) {
	list = []Improvement{}
	for i, t := range s.Ended() {
		at := s.Seconds(cmp.Or(t.Folded, t.Ended))
		if math.IsNaN(at) {
			continue
		}
		at = view.Seconds(time.Duration(at * float64(time.Second)))
		seconds = max(seconds, at)
		v := value(i, t)
		if n := len(list); !math.IsNaN(v) && (n == 0 || d.Better(v, list[n-1].Value)) {
			list = append(list, Improvement{i + 1, at, v, t.Number})
		}
	}
	return list, seconds
}

// Figure shows the best value so far of each study, by evaluations or by the clock.
func (c *Comparison) Figure(clock bool) Figure {
	what := "Best value"
	if c.Objectives != nil {
		what = "Hypervolume"
	}
	if clock {
		return broad("clock", what+" by time", "The same by the clock, which shows what more parallel evaluations and early stopping bring.",
			c.Picture(true))
	}
	lower := map[study.Direction]string{study.Minimize: "lower", study.Maximize: "higher"}[c.Direction]
	return broad("evaluations", what+" by evaluations", "A "+lower+" line needs fewer evaluations. This is what matters if evaluations are "+
		"what costs.", c.Picture(false))
}

// Picture is that of Figure, which also has a form for terminals.
func (c *Comparison) Picture(clock bool) *picture.Compare {
	p := &picture.Compare{Clock: clock, Total: c.Objectives != nil, Objective: picture.Objective{Name: c.Metric,
		Maximize: c.Direction == study.Maximize}}
	for _, s := range c.Studies {
		line := picture.Progress{Name: s.Name}
		add := func(i Improvement) {
			point := picture.Point{X: float64(i.Evaluation), Y: i.Value, Trial: i.Trial}
			if clock {
				point.X = i.Seconds
			}
			line.Points = append(line.Points, point)
		}
		for _, i := range s.Improvements {
			add(i)
		}
		if n := len(s.Improvements); n > 0 && s.Improvements[n-1].Evaluation < s.Evaluations {
			last := s.Improvements[n-1]
			add(Improvement{s.Evaluations, max(s.Seconds, last.Seconds), last.Value, last.Trial})
		}
		p.Studies = append(p.Studies, line)
	}
	return p
}
