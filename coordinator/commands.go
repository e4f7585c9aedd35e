package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

var (
	// ErrIncompatible says that a changed study file does not fit the study:
	// the error lists what differs.
	ErrIncompatible = errors.New("the changed study does not fit what has been evaluated")
	// ErrRunning says that a running study is not deleted unless forced.
	ErrRunning = errors.New("the study is running: stop it first, or force its deletion")
)

// command runs f in the leader's loop and waits until what it changed is
// durable. The error is ErrNotLeader where this replica does not lead.
func (c *Coordinator) command(ctx context.Context, f func(l *leader, now time.Time) error) error {
	l := c.term.Load()
	if l == nil {
		return ErrNotLeader
	}
	done := make(chan error, 1)
	sent := l.send(ctx, func(l *leader, now time.Time) error {
		if l == nil {
			done <- ErrNotLeader
			return nil
		}
		if err := f(l, now); err != nil {
			done <- err
			return nil
		}
		l.replied = append(l.replied, func(err error) { done <- err })
		return nil
	})
	if !sent {
		return context.Cause(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// find returns the study with a name or an id.
func (l *leader) find(nameOrID string) (*run, error) {
	if id, ok := l.names[nameOrID]; ok {
		nameOrID = id
	}
	if r := l.runs[nameOrID]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("study %q: %w", nameOrID, ledger.ErrNotFound)
}

// Create starts a study and returns its record. The study has been checked (see
// study.Parse). The error wraps ledger.ErrNameTaken or ErrNotLeader.
func (c *Coordinator) Create(ctx context.Context, s *study.Study) (*record.Study, error) {
	if err := c.o.Bus.Setup(ctx, []string{defaultPool, s.Spec.Pool}); err != nil {
		return nil, fmt.Errorf("set up pool %s: %w", s.Spec.Pool, err)
	}
	var created record.Study
	err := c.command(ctx, func(l *leader, now time.Time) error {
		id := study.NewID(rand.Reader, now)
		created = record.Study{ID: id, Study: *s, Created: now}
		r := &run{spec: created}
		if err := r.prepare(c); err != nil {
			return err
		}
		e, out, err := engine.New(created, ids{}, c.o.Engine, now)
		if err != nil {
			return fmt.Errorf("create study %s: %w", s.Metadata.Name, err)
		}
		r.engine, r.wake = e, out.Wake
		var batch ledger.Batch
		batch.PutStatus(id, out.Status)
		if err := l.writer.Create(ctx, &created, &batch); err != nil {
			return fmt.Errorf("create study %s: %w", s.Metadata.Name, err)
		}
		out.Status, out.Study = nil, nil
		r.status = e.Status()
		l.runs[id], l.names[r.name()] = r, id
		l.take(r, out)
		if r.wake.IsZero() {
			r.wake = now
		}
		l.log.Info("study created", telemetry.LogStudy, r.name(), "id", id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &created, nil
}

// Stop ends a running study: queued trials are withdrawn and running ones
// cancelled. A study that has ended stays as it is.
func (c *Coordinator) Stop(ctx context.Context, nameOrID, reason string) error {
	return c.command(ctx, func(l *leader, now time.Time) error {
		r, err := l.find(nameOrID)
		if err != nil {
			return err
		}
		if r.running() {
			l.step(r, engine.Stop{At: now, Reason: reason})
		}
		return nil
	})
}

// Update replaces a study's specification by a compatible one. The error wraps
// ErrIncompatible where it is none.
func (c *Coordinator) Update(ctx context.Context, nameOrID string, s *study.Study) error {
	if err := c.o.Bus.Setup(ctx, []string{defaultPool, s.Spec.Pool}); err != nil {
		return fmt.Errorf("set up pool %s: %w", s.Spec.Pool, err)
	}
	return c.command(ctx, func(l *leader, now time.Time) error {
		r, err := l.find(nameOrID)
		if err != nil {
			return err
		}
		if s.Metadata.Name != r.name() {
			return fmt.Errorf("%w: metadata.name is %q, was %q", ErrIncompatible, s.Metadata.Name, r.name())
		}
		if differences := study.Compatible(&r.spec.Study, s); len(differences) > 0 {
			return fmt.Errorf("%w:\n  %s", ErrIncompatible, strings.Join(differences, "\n  "))
		}
		if _, err := l.engineOf(ctx, r, now); err != nil {
			return err
		}
		spec := r.spec
		spec.Study = *s
		l.step(r, engine.Update{At: now, Study: spec})
		r.fleet = 0 // the pool may be another
		return nil
	})
}

// Delete forgets a study, its trials and its messages. A running study is
// refused with ErrRunning unless force is set, which stops it first.
func (c *Coordinator) Delete(ctx context.Context, nameOrID string, force bool) error {
	return c.command(ctx, func(l *leader, now time.Time) error {
		r, err := l.find(nameOrID)
		if err != nil {
			return err
		}
		if r.running() {
			if !force {
				return fmt.Errorf("study %q: %w", nameOrID, ErrRunning)
			}
			l.step(r, engine.Stop{At: now, Reason: "deleted"})
		}
		l.batch.DeleteStudy(r.spec.ID, r.name())
		l.held.purge = append(l.held.purge, r.spec.ID)
		delete(l.runs, r.spec.ID)
		delete(l.names, r.name())
		l.log.Info("study deleted", telemetry.LogStudy, r.name(), "id", r.spec.ID)
		return nil
	})
}
