package display

import (
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Result is a study at the end of a run.
type Result struct {
	Study  record.Study
	Status record.Status
	Trials []record.Trial
	// Curves are the curves that were asked for, by trial. Trials that reported
	// nothing have none.
	Curves map[int][]curve.Series
	Best   *record.Trial
	// Front are the trials that no other one dominates; nil if the study has one objective.
	Front []record.Trial
	// Recommended is the evaluated point with the best posterior mean; nil if nothing
	// has completed, or if the study's optimiser recommends nothing.
	Recommended *optimizer.Recommendation
	// Interrupted means that the run ended before the study did.
	Interrupted bool
	// AlreadyEnded means that the study had ended before this run.
	AlreadyEnded bool
}

// List returns the trials as scripts see them.
func (r *Result) List() view.Trials { return viewed{r} }
