package figure

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// timed are the studies of which there are pictures of how long trials take.
const timed = "studies with 20 completed trials that take a second or longer"

// seconds is what these pictures show.
var seconds = picture.Objective{Name: "seconds", Plain: true}

// clocked reports whether there is a model of how long trials take.
func (s *Study) clocked() bool { return s.Model != nil && len(s.Model.clocked) > 0 }

// Deciding shows how much each parameter decides how long trials take, by a model; nil without one.
func (s *Study) Deciding() []Figure {
	if !s.clocked() {
		return nil
	}
	b := shares(s.Model.Durations.Importance)
	b.None = "The parameters hardly decide how long trials take, or too few trials have completed for a ranking."
	b.Color = 2
	return []Figure{one("importances-duration", "What decides how long trials take", "How much of the change of the trials' times comes "+
		"from each parameter, as a model of their logarithm sees it. Where a parameter decides the time but hardly the value, the quick end of "+
		"its range saves time for nothing.", b)}
}

// Times shows how long each completed evaluation took against one parameter, with what a model expects along it, for the parameters
// that decide the time most.
func (s *Study) Times() (figures []Figure) {
	if !s.clocked() {
		return nil
	}
	for _, name := range s.Model.clocked {
		i := s.Axes.Index(name)
		if i < 0 {
			continue
		}
		f := one(fmt.Sprintf("duration-%d", i), name+" and the time of trials", "As before.", s.duration(i, len(s.Model.clocked)))
		if len(figures) == 0 {
			f.Help = "How long the program of each completed evaluation ran, against this parameter. The line is what a model of the times " +
				"expects on average over all other parameters, with the band that holds 95% of what it thinks possible."
		}
		figures = append(figures, f)
	}
	return figures
}

// duration is the picture of how long completed evaluations took along the i-th axis, one of several that are shown together; nil if
// the model has nothing to say along it.
func (s *Study) duration(i, of int) picture.Picture {
	if s.Model == nil || s.Model.took[s.Axes[i].Name] == nil {
		return nil
	}
	var ran []picture.Evaluation
	for k, e := range s.evaluations() {
		if took := s.Ended()[k].Ran(); took > 0 && e.State == picture.Completed {
			e.Value = took.Seconds()
			ran = append(ran, e)
		}
	}
	return &picture.Slice{
		Objective: seconds, Parameter: axis(&s.Axes[i]), Axis: i, Evaluations: ran, Best: s.Best, Most: max(100, sliceDots/of),
		Expected: s.Model.took[s.Axes[i].Name],
	}
}

// deciding is Deciding as one figure, without pictures where there is none.
func (s *Study) deciding() (f Figure) {
	if all := s.Deciding(); all != nil {
		return all[0]
	}
	return f
}
