package engine

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
)

// newFront returns the empty front of a study; nil if it has one objective.
func newFront(spec *study.Spec) *front.Growing {
	if len(spec.Several) == 0 {
		return nil
	}
	return front.NewGrowing(spec.Several, front.References(spec.Several))
}

// extend adds the values of a completed trial within all limits to the front, if there is one.
func (e *Engine) extend(values study.Values) {
	if e.front != nil {
		e.front.Add(values)
		e.status.Front = e.frontStatus()
	}
}

// frontStatus returns what the status says of the front; nil if there is none.
func (e *Engine) frontStatus() *record.Front {
	if e.front == nil {
		return nil
	}
	s := &record.Front{Size: e.front.Size()}
	if volume, ok := e.front.Hypervolume(); ok {
		s.Hypervolume = &volume
	}
	return s
}

// frontReached says that the front has reached the study's goal; "" if it has not.
func (e *Engine) frontReached() string {
	goal, f := e.spec.Definition.Spec.Goal, e.status.Front
	if goal == nil || f == nil || f.Hypervolume == nil || *f.Hypervolume < goal.Hypervolume {
		return ""
	}
	return fmt.Sprintf("the front reached the goal: a hypervolume of %g", *f.Hypervolume)
}
