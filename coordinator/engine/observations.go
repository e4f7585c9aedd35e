package engine

import (
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// observations are what an optimiser is told of ended trials, in the order of the ledger.
type observations struct {
	list  []optimizer.Observation // append-only: snapshots share it
	all   int                     // how many there have been
	names []string                // of the parameters, which the points share: see optimizer.Packed
	// latest says that the optimiser needs only the latest of them: it is blind, and the
	// space is not finite.
	latest bool
}

// add appends an observation, and returns it as it is kept. Where only the latest are needed, it copies these once in a while, so
// that the memory of the others is freed when no snapshot has them any more.
func (o *observations) add(observation optimizer.Observation) (packed optimizer.Observation) {
	const most = 2 * optimizer.BlindObservations
	if o.latest && len(o.list) >= most {
		latest := o.list[len(o.list)-optimizer.BlindObservations:]
		o.list = append(make([]optimizer.Observation, 0, most), latest...) // snapshots share the old one
	}
	packed = observation.Pack(o.names)
	o.list = append(o.list, packed)
	o.all++
	return packed
}

// snapshot returns the observations, which later ones do not change.
func (o *observations) snapshot() []optimizer.Observation {
	return o.list[:len(o.list):len(o.list)]
}

// Observation returns what the optimiser of a study is told of a trial that has ended; false if
// it is told nothing, as of cancelled trials.
func Observation(spec *study.Spec, t *record.Trial) (o optimizer.Observation, told bool) {
	o = optimizer.Observation{Trial: t.Number, Point: t.Point}
	switch t.State {
	case study.TrialCompleted:
		o.Outcome, o.Values, o.Excess = optimizer.OutcomeCompleted, t.Values, spec.Excess(t.Values, t.Metrics)
	case study.TrialInfeasible:
		o.Outcome = optimizer.OutcomeInfeasible
	case study.TrialFailed:
		o.Outcome = optimizer.OutcomeFailed
	case study.TrialPruned:
		o.Outcome, o.Values, o.Step = optimizer.OutcomePruned, t.Stopped.Likely, t.Stopped.Step
	default:
		return o, false
	}
	if a := t.Last(); a != nil {
		o.Seconds = programTook(a, t.Times.Folded).Seconds()
	}
	o.Cost = observedCost(spec, t)
	if t.State != study.TrialCompleted {
		o.Excess, o.Early = spec.EarlyExcess(t.Metrics), spec.EarlyValues(t.Metrics)
	}
	return o, true
}
