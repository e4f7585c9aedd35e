package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// ErrBroken says that a study cannot be loaded: its records do not fit together,
// or this version does not know its optimiser. It is left as it is, and the
// others go on.
var ErrBroken = errors.New("the study cannot be loaded")

// run is one study of the leader. The engine and the optimiser of a study that
// has ended are loaded when a person asks for them, not for what workers send.
type run struct {
	spec      record.Study
	status    record.Status
	engine    *engine.Engine
	optimizer optimizer.Optimizer
	// broken is why it cannot be loaded; it wraps ErrBroken.
	broken error
	// wake is when the engine wants its next tick; zero where it wants none.
	wake time.Time
	// used is when the engine was last asked for.
	used time.Time
	// told is the state of the pool that the engine was last told of.
	told int64
	// fitted is the ledger position of the last request to the optimiser.
	fitted int64
	// recommending is the ledger position of the last recommendation that was begun,
	// at recommendingAt.
	recommending   int64
	recommendingAt time.Time
	// avoided says which workers get no more of the study, and why.
	avoided map[string]string
	// asking ends the request to the optimiser that is under way; nil if none is.
	asking context.CancelFunc
}

func (r *run) name() string { return r.spec.Definition.Metadata.Name }
func (r *run) pool() string { return r.spec.Definition.Spec.Pool }

// running reports whether the study's engine is at work.
func (r *run) running() bool { return r.engine != nil && r.status.State == study.Running }

// atRest reports whether the study has ended and its engine is not loaded:
// whatever comes of its trials changes nothing.
func (r *run) atRest() bool {
	return r.engine == nil && r.broken == nil && r.status.State.Terminal()
}

// indifferent reports whether a claim of an attempt changes nothing, whatever it
// says: the study has ended, and so has the attempt's trial. A claim of a trial that
// is still to be created would be in its way, should the study go on.
func (r *run) indifferent(id messaging.AttemptID) bool {
	return r.atRest() && id.Trial <= r.status.Trials
}

// ending says to whoever still evaluates an ended study that it has.
func (r *run) ending() string { return "the study has ended: " + string(r.status.State) }

func (r *run) due(now time.Time) bool { return !r.wake.IsZero() && !r.wake.After(now) }

func (r *run) avoid(worker, reason string) {
	if r.avoided == nil {
		r.avoided = map[string]string{}
	}
	r.avoided[worker] = reason
}

// stopAsking ends the request under way: nobody waits for its answer.
func (r *run) stopAsking() {
	if r.asking != nil {
		r.asking()
	}
}

// prepare makes the optimiser of a study.
func (r *run) prepare(newOptimizer func(study.Algorithm) (optimizer.Optimizer, error)) (err error) {
	r.optimizer, err = newOptimizer(r.spec.Definition.Spec.Algorithm)
	if err != nil {
		return fmt.Errorf("make the optimiser of study %s: %w", r.name(), err)
	}
	return nil
}
