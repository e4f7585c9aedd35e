package coordinator

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// ErrBroken says that a study cannot be loaded: its records are inconsistent, or this
// version does not know its optimiser. The coordinator does not touch such a study,
// and the other studies continue.
var ErrBroken = study.NewError(study.ErrPrecondition, "the study cannot be loaded")

// Broken returns why this replica, if it leads, cannot load the study with an id; nil if it can. The
// error wraps ErrBroken.
func (c *Coordinator) Broken(id string) error {
	l := c.term.Load()
	if l == nil {
		return nil
	}
	if why, ok := l.studies.broken.Load(id); ok {
		return why.(error)
	}
	return nil
}

// run is one study of the leader. The engine and the optimiser of an ended study are
// loaded for commands, but not for messages of workers.
type run struct {
	spec   record.Study
	status record.Status
	bytes  int64 // of the specification
	// head says that spec is only the specification's head, of an ended study that was not loaded
	// in this term: see study.Study.Head.
	head      bool
	engine    *engine.Engine
	optimizer optimizer.Optimizer
	fallback  optimizer.Optimizer // nil for none
	// broken says why the study cannot be loaded; it wraps ErrBroken.
	broken error
	// wake is when the engine wants its next tick; zero if it wants none.
	wake time.Time
	// used is when the engine was last requested.
	used time.Time
	// told is the version of the pool that the engine was last told about: see
	// watch.changed.
	told int64
	// fitted is the ledger position of the last request to the optimiser.
	fitted int64
	// recommending is the ledger position of the last recommendation that was
	// started, and recommendingAt when that was.
	recommending   int64
	recommendingAt time.Time
	// avoided holds the workers that get no more of the study, and why.
	avoided map[string]string
	// clients are those that hold the study's attempts.
	clients lease.Clients
	// changes counts the changes of the study's records in this term.
	changes int
	// stepped says that the engine has had an event since clients were last answered.
	stepped bool
	// calls are those of clients that wait for trials, oldest first: see clients.
	calls []*asking
	// asking cancels the last request to the optimiser, fallingBack the last one for
	// fallbacks; nil before the first.
	asking, fallingBack context.CancelFunc
}

// newRun returns a study that has no status yet.
func newRun(spec *record.Study) *run { return &run{spec: *spec, bytes: ledger.Size(spec)} }

func (r *run) name() string { return r.spec.Definition.Metadata.Name }
func (r *run) pool() string { return r.spec.Definition.Spec.Pool }

// running reports whether the study's engine is at work.
func (r *run) running() bool { return r.engine != nil && r.status.State == study.Running }

// atRest reports whether the study has ended and its engine is not loaded. Then
// messages about its trials change nothing.
func (r *run) atRest() bool {
	return r.engine == nil && r.broken == nil && r.status.State.Terminal()
}

// unfinished reports whether the study is at rest without a recommendation of all its
// trials, and none has been tried in this term.
func (r *run) unfinished() bool {
	return r.atRest() && r.status.Counts.Completed > 0 && !r.status.RecommendedOfAll() && r.recommending < r.status.Position
}

// indifferent reports whether a claim of an attempt changes nothing, because both the
// study and the attempt's trial have ended. A claim of a trial that does not exist
// yet matters even then: it would block that trial if the study resumed.
func (r *run) indifferent(id messaging.AttemptID) bool {
	return r.atRest() && id.Trial <= r.status.Trials
}

// ending returns the reason sent to workers that still evaluate an ended study.
func (r *run) ending() string { return "the study has ended: " + string(r.status.State) }

// byClients reports whether clients evaluate the study's trials.
func (r *run) byClients() bool { return r.spec.Definition.Spec.ByClients() }

func (r *run) due(now time.Time) bool { return !r.wake.IsZero() && !r.wake.After(now) }

func (r *run) avoid(worker, reason string) {
	if r.avoided == nil {
		r.avoided = map[string]string{}
	}
	r.avoided[worker] = reason
}

// stopAsking cancels the requests in flight, since nobody waits for their answers.
func (r *run) stopAsking() {
	if r.asking != nil {
		r.asking()
	}
	if r.fallingBack != nil {
		r.fallingBack()
	}
}
