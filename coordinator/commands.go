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
)

var (
	// ErrIncompatible says that a changed study file does not fit the study:
	// the error lists what differs.
	ErrIncompatible = errors.New("the changed study does not fit what has been evaluated")
	// ErrRunning says that a running study is not deleted unless forced.
	ErrRunning = errors.New("the study is running: stop it first, or force its deletion")
)

// command runs f in the leader's loop, with the term's context, and waits until
// what it changed is durable. The error is ErrNotLeader where this replica does
// not lead; where it wraps ledger.ErrUnknown, or ctx ends first, the command may
// have been carried out.
func (c *Coordinator) command(ctx context.Context, f func(ctx context.Context, l *leader, now time.Time) error) error {
	l := c.term.Load()
	if l == nil {
		return ErrNotLeader
	}
	done := make(chan error, 1)
	sent := l.submit(ctx, input{
		refused: func() { done <- ErrNotLeader },
		do: func(ctx context.Context, now time.Time) error {
			err := f(ctx, l, now)
			if err == nil {
				l.journal.replies = append(l.journal.replies, func(err error) { done <- err })
				return nil
			}
			done <- err
			if errors.Is(err, ledger.ErrFenced) || errors.Is(err, ledger.ErrUnknown) {
				return err // nothing more can be written in this term
			}
			return nil
		},
	})
	if !sent && ctx.Err() == nil {
		return ErrNotLeader
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.over:
	}
	select {
	case err := <-done: // whatever the term did was answered before it was over
		return err
	default:
		return ErrNotLeader
	}
}

// setUpPools makes pools, so that their workers can wait.
func (c *Coordinator) setUpPools(ctx context.Context, pools []string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.o.Bus.Setup(ctx, pools); err != nil {
		return fmt.Errorf("set up pools %s: %w", strings.Join(pools, ", "), err)
	}
	return nil
}

// checkSize refuses a study that the ledger does not take, by a *study.Problems:
// in the leader's batch it would be in the way of everything else. Its JSON can be
// several times as long as its file.
func checkSize(s *study.Study) error {
	var b ledger.Batch
	b.PutStudy(&record.Study{ID: record.NewID(rand.Reader, time.Now()), Definition: *s, Created: time.Now()})
	err := b.Err()
	if errors.Is(err, ledger.ErrTooLarge) {
		return &study.Problems{List: []study.Problem{{
			Message: fmt.Sprintf("the study takes more than %d bytes as JSON, where <, > and & take six each: shorten its texts", ledger.MaxBytes),
		}}}
	}
	return err
}

// Create starts a study and returns its record. The study has been checked (see
// file.Parse). The error wraps ledger.ErrNameTaken or ErrNotLeader, or is a
// *study.Problems where the study is too large for the ledger.
func (c *Coordinator) Create(ctx context.Context, s *study.Study) (*record.Study, error) {
	return c.create(ctx, s, func(now time.Time) string { return record.NewID(rand.Reader, now) })
}

// create starts a study under the id that it is given in the leader's loop.
func (c *Coordinator) create(ctx context.Context, s *study.Study, newID func(now time.Time) string) (*record.Study, error) {
	if err := checkSize(s); err != nil {
		return nil, err
	}
	if c.term.Load() == nil {
		return nil, ErrNotLeader
	}
	if err := c.setUpPools(ctx, []string{s.Spec.Pool}); err != nil {
		return nil, err
	}
	var created record.Study
	err := c.command(ctx, func(ctx context.Context, l *leader, now time.Time) error {
		id := newID(now)
		if r := l.studies.runs[id]; r != nil {
			created = r.spec
			return nil
		}
		created = record.Study{ID: id, Definition: *s, Created: now}
		return l.studies.create(ctx, created, now)
	})
	if err != nil {
		return nil, err
	}
	return &created, nil
}

// Stop ends a running study: queued trials are withdrawn and running ones
// cancelled. A study that has ended stays as it is.
func (c *Coordinator) Stop(ctx context.Context, nameOrID, reason string) error {
	return c.command(ctx, func(_ context.Context, l *leader, now time.Time) error {
		r, err := l.studies.find(nameOrID)
		if err != nil {
			return err
		}
		if r.running() {
			l.studies.step(r, engine.Stop{At: now, Reason: reason})
		}
		return r.broken
	})
}

// Update replaces a study's specification by a compatible one; a study that had
// ended goes on where the new one lets it. The error wraps ErrIncompatible where
// it does not fit, and is a *study.Problems where it is too large for the ledger.
func (c *Coordinator) Update(ctx context.Context, nameOrID string, s *study.Study) error {
	if err := checkSize(s); err != nil {
		return err
	}
	if c.term.Load() == nil {
		return ErrNotLeader
	}
	if err := c.setUpPools(ctx, []string{s.Spec.Pool}); err != nil {
		return err
	}
	return c.command(ctx, func(ctx context.Context, l *leader, now time.Time) error {
		r, err := l.studies.find(nameOrID)
		if err != nil {
			return err
		}
		if differences := study.Compatible(&r.spec.Definition, s); len(differences) > 0 {
			return fmt.Errorf("%w:\n  %s", ErrIncompatible, strings.Join(differences, "\n  "))
		}
		if _, err := l.studies.engineOf(ctx, r, now); err != nil {
			return err
		}
		spec := r.spec
		spec.Definition = *s
		l.studies.step(r, engine.Update{At: now, Study: spec})
		r.told = -1 // the pool may be another
		return r.broken
	})
}

// Delete forgets a study, its trials and its messages. A running study is
// refused with ErrRunning unless force is set, which stops it first.
func (c *Coordinator) Delete(ctx context.Context, nameOrID string, force bool) error {
	return c.command(ctx, func(_ context.Context, l *leader, now time.Time) error {
		r, err := l.studies.find(nameOrID)
		if err != nil {
			return err
		}
		if r.status.State == study.Running && !force {
			return fmt.Errorf("study %q: %w", nameOrID, ErrRunning)
		}
		if r.running() {
			l.studies.step(r, engine.Stop{At: now, Reason: "deleted"})
		}
		l.studies.remove(r)
		return nil
	})
}
