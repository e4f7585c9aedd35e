package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// kept serves the study of a state directory, or of a journal, through the API.
type kept struct {
	server.Writer // nil: errReadOnly refuses its calls
	from          source
	// idle is the state directory, if no run has it open: then nothing in it changes.
	idle *idleState
}

// idleState is a state directory that no run has open. The last recommendation that a run stored can lack the
// results of its last trials, so those of its end are made here, once.
type idleState struct {
	*node
	mu   sync.Mutex
	made map[string]*optimizer.Recommendation // by the study's id
}

// recommended returns what is recommended of a study.
func (i *idleState) recommended(ctx context.Context, id string) (*optimizer.Recommendation, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r, ok := i.made[id]; ok {
		return r, nil
	}
	_, e, err := i.load(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := recommend(ctx, e)
	if err != nil {
		return nil, err
	}
	if i.made == nil {
		i.made = map[string]*optimizer.Recommendation{}
	}
	i.made[id] = r
	return r, nil
}

var _ server.Backend = (*kept)(nil)

// source is where studies are kept.
type source interface {
	// place names it, for messages.
	place() string
	studies(ctx context.Context) ([]ledger.Summary, error)
	// read reads a study by its id, without a recommendation.
	read(ctx context.Context, id string) (*display.Result, error)
	trial(ctx context.Context, id string, number int) (record.Trial, error)
	// curve returns what a trial has reported; nil if it has reported nothing.
	curve(ctx context.Context, id string, number int) (*curve.Curve, error)
	// dirOf returns the directory of the worker that ran an attempt, which has its logs.
	dirOf(a *record.Attempt) (string, error)
	// damaged explains an error of a damaged record.
	damaged(err error) error
}

// inState is a state directory.
type inState struct{ *node }

var _ source = inState{}

func (s inState) place() string { return s.o.State }

func (s inState) studies(ctx context.Context) ([]ledger.Summary, error) {
	return s.ledger.Studies(ctx)
}

func (s inState) read(ctx context.Context, id string) (*display.Result, error) {
	r, _, err := s.load(ctx, id)
	return r, err
}

func (s inState) trial(ctx context.Context, id string, number int) (record.Trial, error) {
	return s.ledger.Trial(ctx, id, number)
}

func (s inState) curve(ctx context.Context, id string, number int) (*curve.Curve, error) {
	return s.ledger.Curve(ctx, id, number)
}

// errReadOnly refuses changes.
var errReadOnly = fmt.Errorf("%w: a study of fantasia run is read-only; to change it, edit its file and run it again",
	study.ErrPrecondition)

// study loads the study with the name or id; "" means the only one.
func (k *kept) study(ctx context.Context, nameOrID string) (*display.Result, error) {
	all, err := k.from.studies(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s ledger.Summary) bool {
		return nameOrID == "" || s.Study.ID == nameOrID || s.Study.Definition.Metadata.Name == nameOrID
	})
	if i < 0 {
		return nil, fmt.Errorf("%w: study %q is not in %s", study.ErrNotFound, nameOrID, k.from.place())
	}
	if err := all[i].Err; err != nil {
		return nil, k.from.damaged(err)
	}
	r, err := k.from.read(ctx, all[i].Study.ID)
	switch {
	case err != nil || r.Status.State.Terminal():
	case k.idle != nil:
		interrupt(r)
	case !all[i].Led: // its time stands still
		still := *r
		still.Status.Counted = time.Now()
		r = &still
	}
	return r, err
}

// interrupt makes a study that no process runs say so. A run that was killed left its
// trials running; the next run hands them out again. What is known of the study ends
// with its last trial.
func interrupt(r *display.Result) {
	c := &r.Status.Counts
	c.Pending, c.Queued, c.Running = c.Open(), 0, 0
	r.Status.Reason = "no process runs it: fantasia run with the same study file continues it"
	if r.Study.Definition.Spec.ByClients() {
		r.Status.Reason = "no process serves it: fantasia serve in the same directory continues it"
	}
	r.Status.Ended = r.Status.Started
	for i := range r.Trials {
		t := &r.Trials[i]
		if !t.State.Terminal() {
			t.State = study.TrialPending
		}
		for _, at := range []time.Time{t.Times.Suggested, t.Times.Started, t.Times.Ended} {
			if at.After(r.Status.Ended) {
				r.Status.Ended = at
			}
		}
	}
}

// Studies implements server.Backend.
func (k *kept) Studies(ctx context.Context, after string, limit int) ([]server.Study, error) {
	all, err := k.from.studies(ctx)
	if err != nil {
		return nil, err
	}
	name := func(s ledger.Summary) string { return s.Study.Definition.Metadata.Name }
	slices.SortFunc(all, func(x, y ledger.Summary) int { return strings.Compare(name(x), name(y)) })
	var found []server.Study
	for _, s := range all {
		if name(s) <= after {
			continue
		}
		if len(found) == limit {
			break
		}
		r, err := k.study(ctx, s.Study.ID)
		switch {
		case errors.Is(err, study.ErrDamaged): // it must not hide the others
			found = append(found, server.Study{Spec: s.Study, Status: record.Status{State: s.Status.State, Reason: err.Error()}})
		case err != nil:
			return nil, err
		default:
			found = append(found, k.shown(r))
		}
	}
	return found, nil
}

// Study implements server.Backend.
func (k *kept) Study(ctx context.Context, nameOrID string) (server.Study, error) {
	r, err := k.study(ctx, nameOrID)
	if err != nil {
		return server.Study{}, err
	}
	s := k.shown(r)
	if k.idle == nil || r.Status.Counts.Completed == 0 || r.Status.RecommendedOfAll() {
		return s, nil
	}
	if s.Recommended, err = k.idle.recommended(ctx, r.Study.ID); s.Recommended != nil {
		s.Status.Recommended = record.Recommended(s.Recommended, s.Status.Position)
	}
	return s, err
}

// Name implements server.Backend.
func (k *kept) Name(ctx context.Context, nameOrID string) (string, error) {
	r, err := k.study(ctx, nameOrID)
	if err != nil {
		return "", err
	}
	return r.Study.Definition.Metadata.Name, nil
}

// shown returns the study with what is known of its results.
func (k *kept) shown(r *display.Result) server.Study {
	s := server.Study{Spec: r.Study, Status: r.Status, Best: r.Best}
	if given := r.Status.Recommended; given.Trial > 0 && given.Trial <= len(r.Trials) {
		s.Recommended = given.At(r.Trials[given.Trial-1].Point)
	}
	return s
}

// Trials implements server.Backend.
func (k *kept) Trials(ctx context.Context, nameOrID string, after, limit int) ([]record.Trial, error) {
	r, err := k.study(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	from := min(after, len(r.Trials))
	return r.Trials[from:min(from+limit, len(r.Trials))], nil
}

// Trial implements server.Backend.
func (k *kept) Trial(ctx context.Context, nameOrID string, number int) (record.Trial, error) {
	_, t, err := k.trial(ctx, nameOrID, number)
	if err != nil {
		return record.Trial{}, err
	}
	return *t, nil
}

// trial loads a study and finds one of its trials.
func (k *kept) trial(ctx context.Context, nameOrID string, number int) (*display.Result, *record.Trial, error) {
	r, err := k.study(ctx, nameOrID)
	if err != nil {
		return nil, nil, err
	}
	if number < 1 || number > len(r.Trials) {
		return nil, nil, fmt.Errorf("%w: study %q has %d trials, and no trial %d", study.ErrNotFound, nameOrID, len(r.Trials), number)
	}
	return r, &r.Trials[number-1], nil
}

// WatchStudy implements server.Backend. It is not supported: a run has its live
// display.
func (k *kept) WatchStudy(context.Context, string) iter.Seq2[server.Study, error] {
	return func(yield func(server.Study, error) bool) { yield(server.Study{}, errReadOnly) }
}

// WatchTrials implements server.Backend.
func (k *kept) WatchTrials(context.Context, string, bool) iter.Seq2[record.Trial, error] {
	return func(yield func(record.Trial, error) bool) { yield(record.Trial{}, errReadOnly) }
}

// Archived implements server.Backend. A state directory of fantasia run has no archive.
func (k *kept) Archived(context.Context) ([]archive.Entry, error) { return nil, nil }

// Used implements server.Backend.
func (k *kept) Used(_ context.Context, shares []quota.Share) ([]quota.Use, error) {
	return make([]quota.Use, len(shares)), nil
}

// Workers implements server.Backend.
func (k *kept) Workers(context.Context) ([]coordinator.Worker, error) { return nil, nil }

// Measurements implements server.Backend.
func (k *kept) Measurements(ctx context.Context, nameOrID string, number int) (curve.Reported, error) {
	found := curve.Reported{Trial: number}
	r, _, err := k.trial(ctx, nameOrID, number)
	if err != nil {
		return found, err
	}
	c, err := k.from.curve(ctx, r.Study.ID, number)
	if err != nil || c == nil {
		return found, err
	}
	found.Attempt, found.Series = c.Attempt, c.Series()
	return found, nil
}

// WatchMeasurements implements server.Backend.
func (k *kept) WatchMeasurements(context.Context, string, bool, <-chan struct{}) iter.Seq2[curve.Reported, error] {
	return func(yield func(curve.Reported, error) bool) { yield(curve.Reported{}, errReadOnly) }
}
