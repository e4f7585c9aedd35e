// Package coordinatornode runs a coordinator as a program: connected to etcd and NATS,
// with its API on a port.
package coordinatornode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
)

// Backend serves the API of a replica: it reads from the ledger and writes through the
// coordinator, which must be the leader for that. It is safe for concurrent use.
type Backend struct {
	c *coordinator.Coordinator
	l reads
}

var _ server.Backend = (*Backend)(nil)

// NewBackend returns the backend of a replica.
func NewBackend(c *coordinator.Coordinator, l *ledger.Ledger) *Backend { return &Backend{c, reads{l}} }

// translate converts an error to one of the API.
func translate(err error) error {
	for _, pair := range [][2]error{
		{ledger.ErrNotFound, server.ErrNotFound},
		{ledger.ErrNameTaken, server.ErrExists},
		{coordinator.ErrIncompatible, server.ErrPrecondition},
		{coordinator.ErrRunning, server.ErrPrecondition},
		{coordinator.ErrBroken, server.ErrPrecondition},
		{coordinator.ErrNotLeader, server.ErrUnavailable},
		{coordinator.ErrNoLog, server.ErrNotFound},
		{coordinator.ErrLogAway, server.ErrUnavailable},
		{ledger.ErrFenced, server.ErrUnavailable},
		{ledger.ErrUnknown, server.ErrUnavailable},
		{ledger.ErrNoSpace, server.ErrUnavailable},
		{election.ErrNoLeader, server.ErrUnavailable},
	} {
		if errors.Is(err, pair[0]) {
			return fmt.Errorf("%w: %w", pair[1], err)
		}
	}
	return err
}

// Studies implements server.Backend.
func (b *Backend) Studies(ctx context.Context, after string, limit int) ([]server.Study, error) {
	all, err := b.l.studies(ctx)
	if err != nil {
		return nil, err
	}
	name := func(s ledger.Summary) string { return s.Study.Definition.Metadata.Name }
	slices.SortFunc(all, func(x, y ledger.Summary) int { return strings.Compare(name(x), name(y)) })
	var out []server.Study
	for _, s := range all {
		if name(s) <= after {
			continue
		}
		if len(out) == limit {
			break
		}
		shown, err := b.shown(ctx, s)
		// An unreadable study must not hide the others.
		if err := cmp.Or(s.Err, err); errors.Is(err, ledger.ErrCorrupt) {
			shown.Status.Reason = err.Error()
		} else if err != nil {
			return nil, err
		}
		out = append(out, shown)
	}
	return out, nil
}

// Study implements server.Backend.
func (b *Backend) Study(ctx context.Context, nameOrID string) (server.Study, error) {
	s, err := b.l.study(ctx, nameOrID)
	if err != nil {
		return server.Study{}, err
	}
	return b.whole(ctx, s)
}

// Create implements server.Backend.
func (b *Backend) Create(ctx context.Context, file []byte) (server.Study, error) {
	s, err := inject.ParseStudy("", file)
	if err != nil {
		return server.Study{}, err
	}
	created, err := b.c.Create(ctx, s)
	if err != nil {
		return server.Study{}, translate(err)
	}
	return b.Study(ctx, created.ID)
}

// Update implements server.Backend.
func (b *Backend) Update(ctx context.Context, nameOrID string, file []byte) (server.Study, error) {
	s, err := inject.ParseStudy("", file)
	if err != nil {
		return server.Study{}, err
	}
	if err := b.c.Update(ctx, nameOrID, s); err != nil {
		return server.Study{}, translate(err)
	}
	return b.Study(ctx, nameOrID)
}

// Stop implements server.Backend.
func (b *Backend) Stop(ctx context.Context, nameOrID, reason string) (server.Study, error) {
	if err := b.c.Stop(ctx, nameOrID, reason); err != nil {
		return server.Study{}, translate(err)
	}
	return b.Study(ctx, nameOrID)
}

// Delete implements server.Backend.
func (b *Backend) Delete(ctx context.Context, nameOrID string, force bool) error {
	return translate(b.c.Delete(ctx, nameOrID, force))
}

// Trials implements server.Backend.
func (b *Backend) Trials(ctx context.Context, nameOrID string, after, limit int) ([]record.Trial, error) {
	id, err := b.l.id(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	return b.l.trials(ctx, id, after+1, limit)
}

// Trial implements server.Backend.
func (b *Backend) Trial(ctx context.Context, nameOrID string, number int) (record.Trial, error) {
	id, err := b.l.id(ctx, nameOrID)
	if err != nil {
		return record.Trial{}, err
	}
	return b.l.trial(ctx, id, number)
}

// Measurements implements server.Backend.
func (b *Backend) Measurements(ctx context.Context, nameOrID string, number int) (server.Measurements, error) {
	id, err := b.l.ID(ctx, nameOrID)
	if err != nil {
		return server.Measurements{}, translate(err)
	}
	found := server.Measurements{Trial: number}
	c, err := b.l.Curve(ctx, id, number)
	switch {
	case err != nil:
		return found, translate(err)
	case c == nil: // there may be no such trial
		_, err = b.l.Trial(ctx, id, number)
		return found, translate(err)
	}
	found.Attempt, found.Series = c.Attempt, c.Series()
	return found, nil
}

// WatchMeasurements implements server.Backend.
func (b *Backend) WatchMeasurements(ctx context.Context, nameOrID string, existing bool, ended <-chan struct{}) iter.Seq2[server.Measurements, error] {
	return func(yield func(server.Measurements, error) bool) {
		id, err := b.l.ID(ctx, nameOrID)
		if err == nil {
			err = b.l.WatchCurves(ctx, id, existing, ended, func(r ledger.Reported) error {
				if !yield(server.Measurements{Trial: r.Trial, Attempt: r.Attempt, Series: r.Series}, nil) {
					return errStop
				}
				return nil
			})
		}
		if err != nil && !errors.Is(err, errStop) {
			b.end(ctx, err, func(err error) { yield(server.Measurements{}, err) })
		}
	}
}

// Workers implements server.Backend.
func (b *Backend) Workers(context.Context) ([]server.Worker, error) {
	var out []server.Worker
	for _, w := range b.c.Workers() {
		out = append(out, server.Worker{Heartbeat: w.Heartbeat, Seen: w.Seen})
	}
	return out, nil
}

// errStop ends a watch from inside.
var errStop = errors.New("the watch has ended")

// WatchStudy implements server.Backend. A slow reader gets the latest state of the
// study, not each state in between.
func (b *Backend) WatchStudy(ctx context.Context, nameOrID string) iter.Seq2[server.Study, error] {
	return func(yield func(server.Study, error) bool) {
		id, err := b.l.id(ctx, nameOrID)
		if err != nil {
			yield(server.Study{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		w := watchStudy(ctx, b.l.Ledger, id)
		defer w.running.Wait()
		defer cancel()
		for range w.changed {
			s, err := b.l.Study(ctx, id)
			if errors.Is(err, ledger.ErrNotFound) {
				return
			}
			ended := err == nil && s.Status.State.Terminal()
			var shown server.Study
			switch {
			case err != nil:
			case ended:
				shown, err = b.whole(ctx, s)
			default:
				shown, err = b.shown(ctx, s)
			}
			if err != nil {
				b.end(ctx, err, func(err error) { yield(server.Study{}, err) })
				return
			}
			if !yield(shown, nil) || ended {
				return
			}
		}
		b.end(ctx, w.failed, func(err error) { yield(server.Study{}, err) })
	}
}

// studyWatch signals that a study has changed, once for any number of changes.
type studyWatch struct {
	// changed is closed when the watch has ended; failed is then its error.
	changed chan struct{}
	failed  error
	running sync.WaitGroup
}

// watchStudy watches a study until it is deleted or ctx ends; the caller must wait
// until the watch no longer runs.
func watchStudy(ctx context.Context, l *ledger.Ledger, id string) *studyWatch {
	w := &studyWatch{changed: make(chan struct{}, 1)}
	w.running.Go(func() {
		defer close(w.changed)
		dirty := false
		w.failed = l.Watch(ctx, id, 0, func(c ledger.Change) error {
			switch {
			case c.Deleted:
				return errStop
			case c.Status != nil || c.Study != nil:
				dirty = true
			case c.Synced && dirty:
				dirty = false
				select {
				case w.changed <- struct{}{}:
				default:
				}
			}
			return nil
		})
	})
	return w
}

// WatchTrials implements server.Backend. A slow reader gets the latest state of a
// trial, not each state in between.
func (b *Backend) WatchTrials(ctx context.Context, nameOrID string, existing bool) iter.Seq2[record.Trial, error] {
	return func(yield func(record.Trial, error) bool) {
		s, err := b.l.study(ctx, nameOrID)
		if err != nil {
			yield(record.Trial{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		w := newTrialWatch(existing)
		w.running.Go(func() {
			defer close(w.changed)
			w.failed = b.l.Watch(ctx, s.Study.ID, 0, w.receive)
		})
		defer w.running.Wait()
		defer cancel()
		for range w.changed {
			if !b.sendTrials(ctx, w, s.Study.ID, yield) {
				return
			}
		}
		if b.sendTrials(ctx, w, s.Study.ID, yield) {
			b.end(ctx, w.failed, func(err error) { yield(record.Trial{}, err) })
		}
	}
}

// sendTrials yields the waiting trials, and reports whether more are wanted.
func (b *Backend) sendTrials(ctx context.Context, w *trialWatch, id string, yield func(record.Trial, error) bool) bool {
	for number, t := range w.waiting() {
		if t == nil {
			read, err := b.l.Trial(ctx, id, number)
			if errors.Is(err, ledger.ErrNotFound) {
				return false // the study was deleted
			}
			if err != nil {
				b.end(ctx, err, func(err error) { yield(record.Trial{}, err) })
				return false
			}
			t = &read
		}
		if !yield(*t, nil) {
			return false
		}
	}
	return true
}

// end reports how a watch ended, unless its reader ended it.
func (b *Backend) end(ctx context.Context, err error, report func(error)) {
	if err != nil && !errors.Is(err, errStop) && ctx.Err() == nil {
		report(translate(err))
	}
}

// maxKept is the number of trials that a watch keeps for its reader.
const maxKept = 10_000

// trialWatch keeps changed trials until their reader takes them, each once in its
// latest state. It ends after the revision that ends the study.
type trialWatch struct {
	existing bool
	// changed signals that trials wait. It is closed when the watch has ended; failed
	// is then its error.
	changed chan struct{}
	failed  error
	running sync.WaitGroup
	// present is the revision of what existed when the watch started.
	present int64
	ended   bool

	mu sync.Mutex
	// order contains the numbers of waiting trials, trials the trials by number. Beyond
	// maxKept a trial is nil, and is read from the ledger in its turn.
	order  []int
	trials map[int]*record.Trial
}

func newTrialWatch(existing bool) *trialWatch {
	return &trialWatch{existing: existing, changed: make(chan struct{}, 1), trials: map[int]*record.Trial{}}
}

// receive never waits for the reader: the ledger's watch would queue behind it.
func (w *trialWatch) receive(c ledger.Change) error {
	switch {
	case c.Deleted || c.Synced && w.ended:
		return errStop
	case c.Reset && w.present == 0:
		w.present = c.Revision
	case c.Status != nil:
		w.ended = c.Status.State.Terminal()
	case c.Trial != nil && (w.existing || c.Revision > w.present):
		w.add(*c.Trial)
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	return nil
}

func (w *trialWatch) add(t record.Trial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, waits := w.trials[t.Number]
	if !waits {
		w.order = append(w.order, t.Number)
	}
	if waits && before == nil || !waits && len(w.trials) >= maxKept {
		w.trials[t.Number] = nil
	} else {
		w.trials[t.Number] = &t
	}
}

// waiting takes the waiting trials, in the order of their changes.
func (w *trialWatch) waiting() iter.Seq2[int, *record.Trial] {
	return func(yield func(int, *record.Trial) bool) {
		for {
			number, t, ok := w.take()
			if !ok || !yield(number, t) {
				return
			}
		}
	}
}

func (w *trialWatch) take() (number int, t *record.Trial, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 {
		return 0, nil, false
	}
	number, w.order = w.order[0], w.order[1:]
	t = w.trials[number]
	delete(w.trials, number)
	return number, t, true
}
