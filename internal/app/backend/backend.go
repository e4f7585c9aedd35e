// Package backend is what the API and the dashboard of a replica serve: it reads from the
// ledger, and writes through the coordinator.
package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/study"
)

// Backend serves the API of a replica: it reads from the ledger and writes through the
// coordinator, which must be the leader for that. It is safe for concurrent use.
type Backend struct {
	c       *coordinator.Coordinator
	l       store
	watches watches
}

var _ server.Backend = (*Backend)(nil)

// New returns the backend of a replica.
func New(c *coordinator.Coordinator, l *ledger.Ledger) *Backend { return &Backend{c: c, l: store{l}} }

// Leader returns the address that the leader advertises, or self if this replica leads.
// It is a server.Leader; its error wraps study.ErrAway if etcd does not answer.
func (b *Backend) Leader(ctx context.Context) (address string, self bool, err error) {
	err = b.l.bounded(ctx, func(ctx context.Context) (err error) {
		address, self, err = b.c.Leader(ctx)
		return err
	})
	return address, self, err
}

// translate gives an error by which etcd cannot answer its kind.
func translate(err error) error {
	if ledger.Away(err) {
		return fmt.Errorf("%w: %w", study.ErrUnavailable, err)
	}
	return err
}

// Studies implements server.Backend.
func (b *Backend) Studies(ctx context.Context, after string, limit int) ([]server.Study, error) {
	from := ""
	if after != "" {
		from = after + "\x00" // the next name that there can be
	}
	page, err := b.l.list(ctx, from, limit)
	if err != nil {
		return nil, err
	}
	var out []server.Study
	for _, s := range page {
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
		return named(ctx, b, nameOrID, server.Study{}, err)
	}
	out, err := b.shown(ctx, s)
	return named(ctx, b, nameOrID, out, err)
}

// Name implements server.Backend.
func (b *Backend) Name(ctx context.Context, nameOrID string) (string, error) {
	return b.l.name(ctx, nameOrID)
}

// Create implements server.Backend.
func (b *Backend) Create(ctx context.Context, file []byte) (server.Study, error) {
	s, err := inject.ParseStudy("", file)
	if err != nil {
		return server.Study{}, err
	}
	created, err := write(ctx, b.l, func(ctx context.Context) (*record.Study, error) { return b.c.Create(ctx, s) })
	if err != nil {
		return server.Study{}, err
	}
	return b.Study(ctx, created.ID)
}

// Update implements server.Backend.
func (b *Backend) Update(ctx context.Context, nameOrID string, file []byte, version int) (server.Study, error) {
	s, err := inject.ParseStudy("", file)
	if err != nil {
		return server.Study{}, err
	}
	if err := b.l.write(ctx, func(ctx context.Context) error { return b.c.Update(ctx, nameOrID, s, version) }); err != nil {
		return named(ctx, b, nameOrID, server.Study{}, err)
	}
	return b.Study(ctx, nameOrID)
}

// Annotate implements server.Backend.
func (b *Backend) Annotate(ctx context.Context, nameOrID string, attributes map[string]any) (server.Study, error) {
	if err := b.l.write(ctx, func(ctx context.Context) error { return b.c.Annotate(ctx, nameOrID, attributes) }); err != nil {
		return named(ctx, b, nameOrID, server.Study{}, err)
	}
	return b.Study(ctx, nameOrID)
}

// Stop implements server.Backend.
func (b *Backend) Stop(ctx context.Context, nameOrID, reason string) (server.Study, error) {
	if err := b.l.write(ctx, func(ctx context.Context) error { return b.c.Stop(ctx, nameOrID, reason) }); err != nil {
		return named(ctx, b, nameOrID, server.Study{}, err)
	}
	return b.Study(ctx, nameOrID)
}

// Resume implements server.Backend.
func (b *Backend) Resume(ctx context.Context, nameOrID string) (server.Study, error) {
	if err := b.l.write(ctx, func(ctx context.Context) error { return b.c.Resume(ctx, nameOrID) }); err != nil {
		return server.Study{}, err
	}
	return b.Study(ctx, nameOrID)
}

// Delete implements server.Backend.
func (b *Backend) Delete(ctx context.Context, nameOrID string, force bool) error {
	err := b.l.write(ctx, func(ctx context.Context) error { return b.c.Delete(ctx, nameOrID, force) })
	_, err = named(ctx, b, nameOrID, struct{}{}, err)
	return err
}

// Archive implements server.Backend.
func (b *Backend) Archive(ctx context.Context, nameOrID string) (archive.Entry, error) {
	entry, err := write(ctx, b.l, func(ctx context.Context) (archive.Entry, error) { return b.c.Archive(ctx, nameOrID) })
	return named(ctx, b, nameOrID, entry, err)
}

// Unarchive implements server.Backend.
func (b *Backend) Unarchive(ctx context.Context, nameOrID string) (server.Study, error) {
	restored, err := write(ctx, b.l, func(ctx context.Context) (*record.Study, error) { return b.c.Unarchive(ctx, nameOrID) })
	if err != nil {
		return server.Study{}, err
	}
	return b.Study(ctx, restored.ID)
}

// Archived implements server.Backend.
func (b *Backend) Archived(ctx context.Context) ([]archive.Entry, error) {
	all, err := b.c.Archived(ctx)
	return all, translate(err)
}

// Trials implements server.Backend.
func (b *Backend) Trials(ctx context.Context, nameOrID string, after, limit int) ([]record.Trial, error) {
	id, err := b.l.id(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	trials, err := b.l.trials(ctx, id, after+1, limit)
	workers := b.c.Workers()
	for i := range trials {
		lease.ShowWaiting(workers, &trials[i])
	}
	return named(ctx, b, nameOrID, trials, err)
}

// Trial implements server.Backend.
func (b *Backend) Trial(ctx context.Context, nameOrID string, number int) (record.Trial, error) {
	id, err := b.l.id(ctx, nameOrID)
	if err != nil {
		return record.Trial{}, err
	}
	t, err := b.l.trial(ctx, id, number)
	lease.ShowWaiting(b.c.Workers(), &t)
	return named(ctx, b, nameOrID, t, err)
}

// Measurements implements server.Backend.
func (b *Backend) Measurements(ctx context.Context, nameOrID string, number int) (curve.Reported, error) {
	id, err := b.l.id(ctx, nameOrID)
	if err != nil {
		return curve.Reported{}, err
	}
	found := curve.Reported{Trial: number}
	c, err := b.l.curve(ctx, id, number)
	switch {
	case err != nil:
		return named(ctx, b, nameOrID, found, err)
	case c == nil: // there may be no such trial
		_, err = b.l.trial(ctx, id, number)
		return named(ctx, b, nameOrID, found, err)
	}
	found.Attempt, found.Series = c.Attempt, c.Series()
	return found, nil
}

// Used implements server.Backend.
func (b *Backend) Used(ctx context.Context, shares []quota.Share) ([]quota.Use, error) {
	uses, err := b.c.Used(ctx, shares)
	return uses, translate(err)
}

// Workers implements server.Backend.
func (b *Backend) Workers(context.Context) ([]coordinator.Worker, error) { return b.c.Workers(), nil }

// Suggest implements server.Clients.
func (b *Backend) Suggest(ctx context.Context, nameOrID, client string, count int, wait time.Duration) (coordinator.Suggestions, error) {
	got, err := b.c.Suggest(ctx, nameOrID, client, count, wait)
	return named(ctx, b, nameOrID, got, translate(err))
}

// Heartbeat implements server.Clients.
func (b *Backend) Heartbeat(ctx context.Context, nameOrID, client string, held []coordinator.HeldAttempt) ([]engine.Instruction, error) {
	list, err := b.c.Heartbeat(ctx, nameOrID, client, held)
	return named(ctx, b, nameOrID, list, translate(err))
}

// Measure implements server.Clients.
func (b *Backend) Measure(ctx context.Context, nameOrID, client string, held coordinator.HeldAttempt,
	reports []coordinator.Report) (engine.Instruction, error) {
	next, err := write(ctx, b.l, func(ctx context.Context) (engine.Instruction, error) {
		return b.c.Measure(ctx, nameOrID, client, held, reports)
	})
	return named(ctx, b, nameOrID, next, err)
}

// Tell implements server.Clients.
func (b *Backend) Tell(ctx context.Context, nameOrID string, event func(now time.Time) engine.Event) (record.Trial, error) {
	t, err := write(ctx, b.l, func(ctx context.Context) (record.Trial, error) { return b.c.Tell(ctx, nameOrID, event) })
	return named(ctx, b, nameOrID, t, err)
}

// TailLogs implements server.Backend.
func (b *Backend) TailLogs(ctx context.Context, nameOrID string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error] {
	return namedAll(ctx, b, nameOrID, func(yield func(coordinator.LogPart, error) bool) {
		id, err := b.l.id(ctx, nameOrID)
		if err != nil {
			yield(coordinator.LogPart{}, err)
			return
		}
		t, err := b.l.trial(ctx, id, number)
		if err != nil {
			yield(coordinator.LogPart{}, err)
			return
		}
		b.c.TailLogs(ctx, id, &t, o)(yield)
	})
}
