package engine

import (
	"errors"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// exhaustion is whether the optimisers have said that the space has no other point.
//
// Once over is set, nobody is asked again, and the study ends when no trial is open or can be
// promoted. An update or a cancelled trial makes points free. So it starts anew then, and answers to
// requests from before, at ledger positions below resumed, say nothing.
type exhaustion struct {
	over bool
	// late says that over is set because no other trial is expected to end in time, by so many observations: the next one may
	// change that.
	late     bool
	observed int
	// unproved says that a search has found no other point, without a look at each one.
	unproved bool
	// infeasible is why over is set, if no feasible point was found.
	infeasible error
	resumed    int64
}

// restart forgets what was said up to a ledger position.
func (x *exhaustion) restart(position int64) { *x = exhaustion{resumed: position} }

// reconsider forgets that there is no time for another trial once there are newer observations.
func (x *exhaustion) reconsider(observed int) {
	if x.late && observed > x.observed {
		*x = exhaustion{resumed: x.resumed}
	}
}

// conclude applies the error of an answer, and reports whether it says that there is no other point.
// One that found no feasible point says so only if nothing was pending when it was asked: a point
// that must not be repeated could otherwise become free.
func (x *exhaustion) conclude(err error, ask *Ask) bool {
	switch {
	case ask.From < x.resumed:
		return false
	case errors.Is(err, optimizer.ErrExhausted):
		x.over, x.unproved = true, errors.Is(err, optimizer.ErrNoOther)
	case errors.Is(err, optimizer.ErrNoTime):
		x.over, x.late, x.observed = true, true, ask.observed
	case errors.Is(err, optimizer.ErrNoFeasible) && len(ask.Problem.Pending) == 0:
		x.over, x.infeasible = true, err
	default:
		return false
	}
	return true
}
