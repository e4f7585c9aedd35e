// Package studies holds the studies of a shard, with the engines of those that run. Every event of
// a study goes through Studies.Step, which passes it to the engine, and puts what the engine has
// changed into the next commit.
package studies

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

// Study is one study of the leader. The engine and the optimiser of an ended study are
// loaded for commands, but not for messages of workers. The loop owns it.
type Study struct {
	Spec   record.Study
	Status record.Status
	Bytes  int64 // of the specification
	// Head says that Spec is only the specification's head, of an ended study that was not loaded
	// in this term: see study.Study.Head.
	Head bool
	// Engine is nil if the study has ended and is not loaded, or is broken; then Optimizer is nil, too.
	Engine    *engine.Engine
	Optimizer optimizer.Optimizer
	Fallback  optimizer.Optimizer // nil for none
	// Broken says why the study cannot be loaded; it wraps ErrBroken.
	Broken error
	// Wake is when the engine wants its next tick; zero if it wants none.
	Wake time.Time
	// Avoided holds the workers that get no more of the study, and why.
	Avoided map[string]string
	// Clients are those that hold the study's attempts.
	Clients lease.Clients
	// CapacityTold is the version of the pool that the engine was last told about; -1 has it told
	// again.
	CapacityTold int64
	// Fitted is the ledger position of the last request to the optimiser.
	Fitted int64
	// Recommending is the ledger position of the last recommendation that was
	// started, and RecommendingAt when that was.
	Recommending   int64
	RecommendingAt time.Time
	// Changes counts the changes of the study's records in this term.
	Changes int
	// Stepped says that the engine has had an event since clients were last answered.
	Stepped bool
	// Asking cancels the last request to the optimiser, FallingBack the last one for
	// fallbacks; nil before the first.
	Asking, FallingBack context.CancelFunc

	used time.Time // when the engine was last requested
}

// New returns a study that has no status yet.
func New(spec *record.Study) *Study { return &Study{Spec: *spec, Bytes: ledger.Size(spec)} }

// Name returns the study's name.
func (r *Study) Name() string { return r.Spec.Definition.Metadata.Name }

// Pool returns the pool whose workers evaluate the study.
func (r *Study) Pool() string { return r.Spec.Definition.Spec.Pool }

// Running reports whether the study's engine is at work.
func (r *Study) Running() bool { return r.Engine != nil && r.Status.State == study.Running }

// AtRest reports whether the study has ended and its engine is not loaded. Then
// messages about its trials change nothing.
func (r *Study) AtRest() bool {
	return r.Engine == nil && r.Broken == nil && r.Status.State.Terminal()
}

// Unfinished reports whether the study is at rest without a recommendation of all its
// trials, and none has been tried in this term.
func (r *Study) Unfinished() bool {
	return r.AtRest() && r.Status.Counts.Completed > 0 && !r.Status.RecommendedOfAll() && r.Recommending < r.Status.Position
}

// Indifferent reports whether a claim of an attempt changes nothing, because both the
// study and the attempt's trial have ended. A claim of a trial that does not exist
// yet matters even then: it would block that trial if the study resumed.
func (r *Study) Indifferent(id messaging.AttemptID) bool {
	return r.AtRest() && id.Trial <= r.Status.Trials
}

// Ending returns the reason sent to workers that still evaluate an ended study.
func (r *Study) Ending() string { return "the study has ended: " + string(r.Status.State) }

// ByClients reports whether clients evaluate the study's trials.
func (r *Study) ByClients() bool { return r.Spec.Definition.Spec.ByClients() }

// Due reports whether the engine wants a tick now.
func (r *Study) Due(now time.Time) bool { return !r.Wake.IsZero() && !r.Wake.After(now) }

func (r *Study) avoid(worker, reason string) {
	if r.Avoided == nil {
		r.Avoided = map[string]string{}
	}
	r.Avoided[worker] = reason
}

// StopAsking cancels the requests in flight, since nobody waits for their answers.
func (r *Study) StopAsking() {
	if r.Asking != nil {
		r.Asking()
	}
	if r.FallingBack != nil {
		r.FallingBack()
	}
}

// Useful returns how many slots a running study can use.
func (r *Study) Useful() int {
	spec := &r.Spec.Definition.Spec
	if spec.ByClients() {
		return 0
	}
	if spec.Budget.MaxTrials == 0 {
		return spec.Parallelism
	}
	return min(spec.Parallelism, spec.Budget.MaxTrials-r.Status.Counts.Ended())
}
