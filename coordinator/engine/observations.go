package engine

import "github.com/fantasia-hpo/fantasia/optimizer"

// observations are what an optimiser is told of ended trials, in the order of the ledger.
type observations struct {
	list []optimizer.Observation // append-only: snapshots share it
	all  int                     // how many there have been
	// latest says that the optimiser needs only the latest of them: it is blind, and the
	// space is not finite.
	latest bool
}

// add adds an observation.
func (o *observations) add(observation optimizer.Observation) {
	const most = 2 * optimizer.BlindObservations
	if o.latest && len(o.list) >= most {
		latest := o.list[len(o.list)-optimizer.BlindObservations:]
		o.list = append(make([]optimizer.Observation, 0, most), latest...) // snapshots share the old one
	}
	o.list = append(o.list, observation)
	o.all++
}

// snapshot returns the observations, which later ones do not change.
func (o *observations) snapshot() []optimizer.Observation {
	return o.list[:len(o.list):len(o.list)]
}
