package studies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// restAfter is how long an ended study keeps its engine after its last use.
const restAfter = 5 * time.Minute

// callTimeout bounds one call to the ledger.
const callTimeout = 10 * time.Second

// Options configure the studies of a term.
type Options struct {
	Log *slog.Logger
	// Group is where what the engines change waits for its commit.
	Group    *commit.Group
	Settings engine.Settings
	// NewOptimizer makes the optimiser of a study.
	NewOptimizer func(study.Algorithm) (optimizer.Optimizer, error)
	// NewFallback makes what suggests points in its place; nil for none.
	NewFallback func() optimizer.Optimizer
	// Fetch reads a study from the ledger.
	Fetch func(ctx context.Context, id string) (*ledger.Records, error)
	// Changed is called when a pool's capacity for a study changes.
	Changed func(pool string)
}

// Studies holds the shard's studies and the engines of the loaded ones. The loop
// owns it, except for WhyBroken.
type Studies struct {
	o Options

	byID   map[string]*Study
	loaded map[string]*Study // those that have an engine, by id
	names  map[string]string // name to id
	broken sync.Map          // why studies cannot be loaded, an error by id
	// lacking are ended studies without an engine that may still need their final
	// recommendation, by id: a leader can die before it has made one.
	lacking []string
}

// NewStudies returns the studies of a new term; it has none.
func NewStudies(o Options) *Studies {
	return &Studies{o: o, byID: map[string]*Study{}, loaded: map[string]*Study{}, names: map[string]string{}}
}

// Get returns the study with an id; nil if there is none.
func (s *Studies) Get(id string) *Study { return s.byID[id] }

// All returns the studies in no particular order.
func (s *Studies) All() iter.Seq[*Study] { return maps.Values(s.byID) }

// Len returns how many studies there are.
func (s *Studies) Len() int { return len(s.byID) }

// Loaded returns the studies that have an engine, in no particular order.
func (s *Studies) Loaded() iter.Seq[*Study] { return maps.Values(s.loaded) }

// WhyBroken returns why the study with an id cannot be loaded; nil if it can. It is safe for
// concurrent use.
func (s *Studies) WhyBroken(id string) error {
	if why, ok := s.broken.Load(id); ok {
		return why.(error)
	}
	return nil
}

// Find returns the study with a name or an id.
func (s *Studies) Find(nameOrID string) (*Study, error) {
	if id, ok := s.names[nameOrID]; ok {
		nameOrID = id
	}
	if r := s.byID[nameOrID]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("study %q: %w", nameOrID, ledger.ErrNotFound)
}

// Ordered returns the studies that have an engine, by id, which is the order in which
// they were created.
func (s *Studies) Ordered() []*Study {
	return slices.SortedFunc(maps.Values(s.loaded), func(a, b *Study) int { return cmp.Compare(a.Spec.ID, b.Spec.ID) })
}

// Adopt adds a stored study. It loads the engine if the study is running, but not if
// the study has ended or cannot be read.
func (s *Studies) Adopt(stored *ledger.Records, now time.Time) *Study {
	r := &Study{Spec: stored.Study, Status: stored.Status, Bytes: stored.Bytes, Head: stored.Head}
	s.byID[r.Spec.ID], s.names[r.Name()] = r, r.Spec.ID
	switch {
	case stored.Err != nil:
		s.breaks(r, stored.Err)
	case stored.Status.State == study.Running:
		s.load(r, stored, now)
	default:
		s.finish(r)
	}
	return r
}

// finish has the final recommendation of an ended study made, if it is missing.
func (s *Studies) finish(r *Study) {
	if r.Unfinished() {
		s.lacking = append(s.lacking, r.Spec.ID)
	}
}

// NextUnfinished returns the next ended study whose final recommendation may be missing, each once;
// nil if there is none. Its engine is not loaded.
func (s *Studies) NextUnfinished() *Study {
	for len(s.lacking) > 0 {
		r := s.byID[s.lacking[0]]
		s.lacking = s.lacking[1:]
		if r != nil && r.Unfinished() { // else it was deleted, or has resumed
			return r
		}
	}
	return nil
}

// Recommended stores a recommendation. The engine of an ended study need not be loaded
// for that.
func (s *Studies) Recommended(r *Study, now time.Time, made record.Recommendation) {
	if !r.AtRest() {
		s.Step(r, engine.Recommended{At: now, Recommendation: made})
		return
	}
	if made.Position != r.Status.Position || math.IsNaN(made.Mean-made.Mean) || math.IsNaN(made.SD-made.SD) {
		return
	}
	status := r.Status
	status.Recommended = made
	s.takeOutput(r, &engine.Output{Status: &status})
}

// Create stores a new study and starts it.
func (s *Studies) Create(ctx context.Context, r *Study, now time.Time) error {
	spec := &r.Spec
	if err := s.Prepare(r); err != nil {
		return err
	}
	e, out, err := engine.New(*spec, drive.IDs{}, s.settingsOf(r), now)
	if err != nil {
		return fmt.Errorf("create study %s: %w", r.Name(), err)
	}
	var batch ledger.Batch
	batch.PutStatus(spec.ID, out.Status)
	if err := s.o.Group.Create(ctx, spec, &batch); err != nil {
		return fmt.Errorf("create study %s: %w", r.Name(), err)
	}
	r.Status, out.Status = *out.Status, nil // already stored
	s.byID[spec.ID], s.names[r.Name()] = r, spec.ID
	s.attach(r, e, &out, now)
	s.o.Log.Info("study created", telemetry.LogStudy, r.Name(), "id", spec.ID)
	return nil
}

// Remove deletes a study, its records and its messages.
func (s *Studies) Remove(r *Study) {
	id := r.Spec.ID
	s.o.Group.Delete(id, r.Name())
	delete(s.byID, id)
	delete(s.loaded, id)
	s.broken.Delete(id)
	delete(s.names, r.Name())
	s.o.Log.Info("study deleted", telemetry.LogStudy, r.Name(), "id", id)
}

// EngineOf returns the study's engine and loads it if necessary. The error wraps
// ErrBroken if the study cannot be loaded; other errors may be temporary.
func (s *Studies) EngineOf(ctx context.Context, r *Study, now time.Time) (*engine.Engine, error) {
	r.used = now
	if r.Engine != nil || r.Broken != nil {
		return r.Engine, r.Broken
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, err := s.o.Fetch(ctx, r.Spec.ID)
	switch {
	case errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrNotFound):
		s.breaks(r, err)
	case err != nil:
		return nil, fmt.Errorf("load study %s: %w", r.Name(), err)
	default:
		r.Spec, r.Head = stored.Study, false
		s.load(r, stored, now)
	}
	return r.Engine, r.Broken
}

// load creates the engine of a study from its records, or marks the study as broken.
func (s *Studies) load(r *Study, stored *ledger.Records, now time.Time) {
	if err := s.Prepare(r); err != nil {
		s.breaks(r, err)
		return
	}
	e, out, err := engine.Load(stored.Study, stored.Status, stored.Model, stored.Trials, drive.IDs{}, s.settingsOf(r), now)
	if err != nil {
		s.breaks(r, err)
		return
	}
	s.attach(r, e, &out, now)
	// The rule for early stopping must know every curve before a new report arrives.
	for _, trial := range slices.Sorted(maps.Keys(stored.Curves)) {
		s.Step(r, engine.Recalled{At: now, Trial: trial, Curve: stored.Curves[trial]})
	}
}

// Prepare makes a study's optimiser and what suggests points in its place.
func (s *Studies) Prepare(r *Study) (err error) {
	if r.Optimizer, err = s.o.NewOptimizer(r.Spec.Definition.Spec.Algorithm); err != nil {
		return fmt.Errorf("make the optimiser of study %s: %w", r.Name(), err)
	}
	if s.o.NewFallback != nil {
		r.Fallback = s.o.NewFallback()
	}
	return nil
}

// settingsOf returns the settings of a study's engine. The study MUST have its
// optimiser.
func (s *Studies) settingsOf(r *Study) engine.Settings {
	settings := s.o.Settings
	_, settings.Blind = r.Optimizer.(optimizer.Blind)
	settings.Fallback = r.Fallback != nil
	return settings
}

// attach gives a study its engine.
func (s *Studies) attach(r *Study, e *engine.Engine, out *engine.Output, now time.Time) {
	r.Engine, r.Wake, r.used, r.CapacityTold, r.Fitted = e, out.Wake, now, 0, fittedBefore(e)
	r.Recommending = e.Status().Recommended.Position
	s.loaded[r.Spec.ID] = r
	s.takeOutput(r, out)
}

// rest drops the engine of an ended study; engineOf loads it again.
func (s *Studies) rest(r *Study) {
	r.Engine, r.Optimizer, r.Fallback, r.Wake = nil, nil, nil, time.Time{}
	delete(s.loaded, r.Spec.ID)
	s.finish(r)
}

// wayBack says what restores a damaged study.
const wayBack = "a backup restores it (fantasia restore), or another member of the etcd cluster that still has the record " +
	"(docs/operate/operate.md#damaged-data)"

// breaks marks a study as one that cannot be loaded.
func (s *Studies) breaks(r *Study, err error) {
	if errors.Is(err, study.ErrDamaged) {
		err = fmt.Errorf("%w; %s", err, wayBack)
	}
	r.Broken = fmt.Errorf("study %s: %w: %w", r.Name(), ErrBroken, err)
	s.broken.Store(r.Spec.ID, r.Broken)
	s.o.Log.Error("could not load a study; leaving it untouched", telemetry.LogStudy, r.Name(), telemetry.LogError, err)
}

// Step applies an event to a study, adds the output to the journal, and returns it.
// It does nothing if the study is not loaded, or if an earlier event has broken it.
func (s *Studies) Step(r *Study, ev engine.Event) engine.Output {
	if r == nil || r.Engine == nil {
		return engine.Output{}
	}
	out := r.Engine.Step(ev)
	r.Wake, r.Stepped = out.Wake, true
	s.takeOutput(r, &out)
	if r.Engine == nil { // the output broke the study and was dropped
		return engine.Output{}
	}
	return out
}

// StepIn applies an event to the study with an id, if it is loaded.
func (s *Studies) StepIn(id string, ev engine.Event) { s.Step(s.byID[id], ev) }

// takeOutput puts an output's records into the journal's batch and holds back its effects.
// If the ledger would refuse a record, takeOutput marks the study as broken: the study
// stays as it was last committed, and the other studies continue.
func (s *Studies) takeOutput(r *Study, out *engine.Output) {
	r.Changes++
	records := RecordsOf(r.Spec.ID, out)
	if err := records.Err(); err != nil {
		s.breaks(r, err)
		s.rest(r)
		r.StopAsking()
		return
	}
	if out.Study != nil {
		r.Spec, r.Bytes = *out.Study, ledger.Size(out.Study)
	}
	if out.Status != nil {
		r.Status = *out.Status
	}
	for _, w := range out.Warnings {
		s.o.Log.Warn(w, telemetry.LogStudy, r.Name())
	}
	for _, a := range out.Avoids {
		r.avoid(a.Worker, a.Reason)
		s.o.Changed(r.Pool())
	}
	s.o.Group.Add(&r.Spec, records, out)
	if r.Status.State.Terminal() {
		r.StopAsking()
	}
}

// Waits reports whether an assignment still waits for a claim.
func (s *Studies) Waits(id string, trial int, nonce string) bool {
	r := s.byID[id]
	if r == nil || !r.Running() {
		return false
	}
	t, ok := r.Engine.Trial(trial)
	return ok && t.State == study.TrialQueued && t.Last().Nonce == nonce
}

// RecordsOf returns the records of an output.
func RecordsOf(id string, out *engine.Output) *ledger.Batch {
	b := &ledger.Batch{}
	for i := range out.Trials {
		b.PutTrial(id, &out.Trials[i])
	}
	if out.Study != nil {
		b.PutStudy(out.Study)
	}
	if out.Model != nil {
		b.PutModel(id, out.Model)
	}
	if out.Status != nil {
		b.PutStatus(id, out.Status)
	}
	return b
}

// RestUnused drops the engine of a study that has ended, if nobody has used it for a while.
func (s *Studies) RestUnused(r *Study, now time.Time) {
	if !r.Running() && now.Sub(r.used) > restAfter {
		s.rest(r)
	}
}

// fittedBefore returns the ledger position of the observations behind the last answer
// of the optimiser that a loaded study has used.
func fittedBefore(e *engine.Engine) int64 {
	for n := e.Status().Trials; n > 0; n-- {
		if t, ok := e.Trial(n); ok && t.Source != optimizer.SourceFallback {
			return t.From
		}
	}
	return 0
}
