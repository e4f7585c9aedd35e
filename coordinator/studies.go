package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

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

// studies holds the shard's studies and the engines of the loaded ones. The loop
// owns it.
type studies struct {
	log          *slog.Logger
	journal      *journal
	settings     engine.Settings
	newOptimizer func(study.Algorithm) (optimizer.Optimizer, error)
	newFallback  func() optimizer.Optimizer                                    // nil for none
	fetch        func(ctx context.Context, id string) (*ledger.Records, error) // reads the ledger
	changed      func(pool string)                                             // called when a pool's capacity for a study changes

	runs   map[string]*run   // by id
	loaded map[string]*run   // those that have an engine, by id
	names  map[string]string // name to id
	broken sync.Map          // why studies cannot be loaded, an error by id; anybody may read it
	// unfinished are ended studies without an engine that may still need their final
	// recommendation, by id: a leader can die before it has made one.
	unfinished []string
}

// find returns the study with a name or an id.
func (s *studies) find(nameOrID string) (*run, error) {
	if id, ok := s.names[nameOrID]; ok {
		nameOrID = id
	}
	if r := s.runs[nameOrID]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("study %q: %w", nameOrID, ledger.ErrNotFound)
}

// ordered returns the studies that have an engine, by id, which is the order in which
// they were created.
func (s *studies) ordered() []*run {
	return slices.SortedFunc(maps.Values(s.loaded), func(a, b *run) int { return cmp.Compare(a.spec.ID, b.spec.ID) })
}

// adopt adds a stored study. It loads the engine if the study is running, but not if
// the study has ended or cannot be read.
func (s *studies) adopt(stored *ledger.Records, now time.Time) *run {
	r := &run{spec: stored.Study, status: stored.Status, bytes: stored.Bytes, head: stored.Head}
	s.runs[r.spec.ID], s.names[r.name()] = r, r.spec.ID
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
func (s *studies) finish(r *run) {
	if r.unfinished() {
		s.unfinished = append(s.unfinished, r.spec.ID)
	}
}

// recommended stores a recommendation. The engine of an ended study need not be loaded
// for that.
func (s *studies) recommended(r *run, now time.Time, made record.Recommendation) {
	if !r.atRest() {
		s.step(r, engine.Recommended{At: now, Recommendation: made})
		return
	}
	if made.Position != r.status.Position || math.IsNaN(made.Mean-made.Mean) || math.IsNaN(made.SD-made.SD) {
		return
	}
	status := r.status
	status.Recommended = made
	s.takeOutput(r, &engine.Output{Status: &status})
}

// create stores a new study and starts it.
func (s *studies) create(ctx context.Context, r *run, now time.Time) error {
	spec := &r.spec
	if err := s.prepare(r); err != nil {
		return err
	}
	e, out, err := engine.New(*spec, drive.IDs{}, s.settingsOf(r), now)
	if err != nil {
		return fmt.Errorf("create study %s: %w", r.name(), err)
	}
	var batch ledger.Batch
	batch.PutStatus(spec.ID, out.Status)
	if err := s.journal.writer.Create(ctx, spec, &batch); err != nil {
		return fmt.Errorf("create study %s: %w", r.name(), err)
	}
	r.status, out.Status = *out.Status, nil // already stored
	s.runs[spec.ID], s.names[r.name()] = r, spec.ID
	s.attach(r, e, &out, now)
	s.log.Info("study created", telemetry.LogStudy, r.name(), "id", spec.ID)
	return nil
}

// remove deletes a study, its records and its messages.
func (s *studies) remove(r *run) {
	id := r.spec.ID
	s.journal.batch.DeleteStudy(id, r.name())
	s.journal.curves.Forget(id)
	s.journal.held.Purged = append(s.journal.held.Purged, id)
	delete(s.runs, id)
	delete(s.loaded, id)
	s.broken.Delete(id)
	delete(s.names, r.name())
	s.log.Info("study deleted", telemetry.LogStudy, r.name(), "id", id)
}

// engineOf returns the study's engine and loads it if necessary. The error wraps
// ErrBroken if the study cannot be loaded; other errors may be temporary.
func (s *studies) engineOf(ctx context.Context, r *run, now time.Time) (*engine.Engine, error) {
	r.used = now
	if r.engine != nil || r.broken != nil {
		return r.engine, r.broken
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, err := s.fetch(ctx, r.spec.ID)
	switch {
	case errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrNotFound):
		s.breaks(r, err)
	case err != nil:
		return nil, fmt.Errorf("load study %s: %w", r.name(), err)
	default:
		r.spec, r.head = stored.Study, false
		s.load(r, stored, now)
	}
	return r.engine, r.broken
}

// load creates the engine of a study from its records, or marks the study as broken.
func (s *studies) load(r *run, stored *ledger.Records, now time.Time) {
	if err := s.prepare(r); err != nil {
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
		s.step(r, engine.Recalled{At: now, Trial: trial, Curve: stored.Curves[trial]})
	}
}

// prepare makes a study's optimiser and what suggests points in its place.
func (s *studies) prepare(r *run) (err error) {
	if r.optimizer, err = s.newOptimizer(r.spec.Definition.Spec.Algorithm); err != nil {
		return fmt.Errorf("make the optimiser of study %s: %w", r.name(), err)
	}
	if s.newFallback != nil {
		r.fallback = s.newFallback()
	}
	return nil
}

// settingsOf returns the settings of a study's engine. The study MUST have its
// optimiser.
func (s *studies) settingsOf(r *run) engine.Settings {
	settings := s.settings
	_, settings.Blind = r.optimizer.(optimizer.Blind)
	settings.Fallback = r.fallback != nil
	return settings
}

// attach gives a study its engine.
func (s *studies) attach(r *run, e *engine.Engine, out *engine.Output, now time.Time) {
	r.engine, r.wake, r.used, r.told, r.fitted = e, out.Wake, now, 0, fittedBefore(e)
	r.recommending = e.Status().Recommended.Position
	s.loaded[r.spec.ID] = r
	s.takeOutput(r, out)
}

// rest drops the engine of an ended study; engineOf loads it again.
func (s *studies) rest(r *run) {
	r.engine, r.optimizer, r.fallback, r.wake = nil, nil, nil, time.Time{}
	delete(s.loaded, r.spec.ID)
	s.finish(r)
}

// wayBack says what restores a damaged study.
const wayBack = "a backup restores it (fantasia restore), or another member of the etcd cluster that still has the record " +
	"(docs/operate/operate.md#damaged-data)"

// breaks marks a study as one that cannot be loaded.
func (s *studies) breaks(r *run, err error) {
	if errors.Is(err, study.ErrDamaged) {
		err = fmt.Errorf("%w; %s", err, wayBack)
	}
	r.broken = fmt.Errorf("study %s: %w: %w", r.name(), ErrBroken, err)
	s.broken.Store(r.spec.ID, r.broken)
	s.log.Error("could not load a study; leaving it untouched", telemetry.LogStudy, r.name(), telemetry.LogError, err)
}

// step applies an event to a study, adds the output to the journal, and returns it.
// It does nothing if the study is not loaded, or if an earlier event has broken it.
func (s *studies) step(r *run, ev engine.Event) engine.Output {
	if r == nil || r.engine == nil {
		return engine.Output{}
	}
	out := r.engine.Step(ev)
	r.wake, r.stepped = out.Wake, true
	s.takeOutput(r, &out)
	if r.engine == nil { // the output broke the study and was dropped
		return engine.Output{}
	}
	return out
}

// StepIn applies an event to the study with an id, if it is loaded.
func (s *studies) StepIn(id string, ev engine.Event) { s.step(s.runs[id], ev) }

// takeOutput puts an output's records into the journal's batch and holds back its effects.
// If the ledger would refuse a record, take marks the study as broken: the study
// stays as it was last committed, and the other studies continue.
func (s *studies) takeOutput(r *run, out *engine.Output) {
	r.changes++
	records := recordsOf(r.spec.ID, out)
	if err := records.Err(); err != nil {
		s.breaks(r, err)
		s.rest(r)
		r.stopAsking()
		return
	}
	if out.Study != nil {
		r.spec, r.bytes = *out.Study, ledger.Size(out.Study)
	}
	if out.Status != nil {
		r.status = *out.Status
	}
	for _, w := range out.Warnings {
		s.log.Warn(w, telemetry.LogStudy, r.name())
	}
	for _, a := range out.Avoids {
		r.avoid(a.Worker, a.Reason)
		s.changed(r.pool())
	}
	s.journal.add(r, records, out)
	if r.status.State.Terminal() {
		r.stopAsking()
	}
}

// Waits reports whether an assignment still waits for a claim.
func (s *studies) Waits(id string, trial int, nonce string) bool {
	r := s.runs[id]
	if r == nil || !r.running() {
		return false
	}
	t, ok := r.engine.Trial(trial)
	return ok && t.State == study.TrialQueued && t.Last().Nonce == nonce
}

// recordsOf returns the records of an output.
func recordsOf(id string, out *engine.Output) *ledger.Batch {
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
