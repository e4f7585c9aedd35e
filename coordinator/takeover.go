package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// streams are what a leader reads, in the order in which a takeover drains
// them: claims first, so that a result meets its claim.
var streams = [...]messaging.Stream{messaging.StreamClaim, messaging.StreamResult}

// defaultPool exists even before any study names it, so that workers can wait.
const defaultPool = "default"

// takeOver makes this replica the shard's only voice: it fences older leaders,
// loads the ledger, and folds everything that was published until the fence.
func (l *leader) takeOver(ctx context.Context, handBack bool) ([]messaging.Reader, error) {
	var err error
	if l.writer, err = l.c.ledger.Lead(ctx, ledger.Fence{Key: l.term.Key, Revision: l.term.Epoch}); err != nil {
		return nil, fmt.Errorf("fence the ledger: %w", err)
	}
	snapshot, err := l.c.ledger.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the ledger: %w", err)
	}
	pools := []string{defaultPool}
	for _, s := range snapshot.Studies {
		if p := s.Study.Study.Spec.Pool; !slices.Contains(pools, p) {
			pools = append(pools, p)
		}
	}
	if err := l.c.o.Bus.Setup(ctx, pools); err != nil {
		return nil, fmt.Errorf("set the streams up: %w", err)
	}
	if err := l.c.o.Bus.Fence(ctx, l.term.Epoch); err != nil {
		return nil, fmt.Errorf("fence older leaders: %w", err)
	}
	now := time.Now()
	for i := range snapshot.Studies {
		if err := l.adopt(&snapshot.Studies[i], now); err != nil {
			return nil, err
		}
	}
	var readers []messaging.Reader
	for _, s := range streams {
		r, err := l.drain(ctx, s, snapshot.Cursors[s])
		if r != nil {
			readers = append(readers, r)
		}
		if err != nil {
			for _, r := range readers {
				err = errors.Join(err, r.Close())
			}
			return nil, err
		}
	}
	now = time.Now()
	for _, r := range l.ordered() {
		if !r.running() {
			continue
		}
		if handBack {
			l.step(r, engine.HandBackAll{At: now})
		}
		l.step(r, engine.Tick{At: now}) // opens the study: see engine.Tick
	}
	return readers, l.commit(ctx)
}

// adopt takes a stored study in: wholly where it runs, only its name and state
// where it has ended.
func (l *leader) adopt(s *ledger.Records, now time.Time) error {
	r := &run{spec: s.Study, status: s.Status}
	l.runs[r.spec.ID] = r
	l.names[r.name()] = r.spec.ID
	if s.Status.State != study.Running {
		return nil
	}
	return l.load(r, s, now)
}

// load makes the engine of a study from its records.
func (l *leader) load(r *run, s *ledger.Records, now time.Time) error {
	if err := r.prepare(l.c); err != nil {
		return err
	}
	e, out, err := engine.Load(s.Study, s.Status, s.Model, s.Trials, ids{}, l.c.o.Engine, now)
	if err != nil {
		return fmt.Errorf("load study %s: %w", r.name(), err)
	}
	r.engine, r.wake, r.fleet = e, out.Wake, 0
	l.take(r, out)
	return nil
}

// drain folds a stream from its cursor to the last message that it holds now,
// and returns the reader to go on with.
func (l *leader) drain(ctx context.Context, s messaging.Stream, from messaging.Cursor) (messaging.Reader, error) {
	last, err := l.c.o.Bus.Last(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("find the end of stream %s: %w", s, err)
	}
	r, err := l.c.o.Bus.Read(ctx, s, from)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", s, err)
	}
	// A purged tail ends no drain, so waiting for its last message is bounded.
	for seen := from.Sequence; seen < last; {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		entry, err := r.Next(call)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			break
		}
		if err != nil {
			return r, fmt.Errorf("drain stream %s: %w", s, err)
		}
		seen = entry.Cursor.Sequence
		if err := l.entry(ctx, &entry, time.Now()); err != nil {
			return r, err
		}
		if l.batch.Full() {
			if err := l.commit(ctx); err != nil {
				return r, err
			}
		}
	}
	return r, l.commit(ctx)
}
