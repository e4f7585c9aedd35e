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
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// streams are what a leader reads, in the order in which a takeover drains
// them: claims first, so that a result meets its claim.
var streams = [...]messaging.Stream{messaging.StreamClaim, messaging.StreamResult}

// defaultPool exists even before any study names it, so that workers can wait.
const defaultPool = "default"

// drainWait is how long a drain waits for an entry before it looks again whether
// there still is one.
const drainWait = 2 * time.Second

// takeOver makes this replica the shard's only voice: it fences older leaders,
// loads the ledger, and folds everything that was published until the fence.
func (l *leader) takeOver(ctx context.Context, handBack bool) error {
	if err := l.fence(ctx); err != nil {
		return err
	}
	snapshot, err := l.c.ledger.Load(ctx)
	if err != nil {
		return fmt.Errorf("load the ledger: %w", err)
	}
	if err := l.setUp(ctx, snapshot); err != nil {
		return err
	}
	now := time.Now()
	for i := range snapshot.Studies {
		l.adopt(ctx, &snapshot.Studies[i], now)
	}
	for _, s := range streams {
		if err := l.drain(ctx, s, snapshot.Cursors[s]); err != nil {
			return err
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
	return l.commit(ctx)
}

// fence keeps every older leader from writing to the ledger and from publishing.
func (l *leader) fence(ctx context.Context) (err error) {
	if l.writer, err = l.c.ledger.Lead(ctx, ledger.Fence{Key: l.term.Key, Revision: l.term.Epoch}); err != nil {
		return fmt.Errorf("fence the ledger: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*callTimeout)
	defer cancel()
	if err := l.c.o.Bus.Setup(ctx, []string{defaultPool}); err != nil {
		return fmt.Errorf("set the streams up: %w", err)
	}
	if err := l.c.o.Bus.Fence(ctx, l.term.Epoch); err != nil {
		return fmt.Errorf("fence older leaders: %w", err)
	}
	return nil
}

// setUp makes the pools of the running studies, so that their workers can wait.
func (l *leader) setUp(ctx context.Context, snapshot *ledger.Snapshot) error {
	var pools []string
	for i := range snapshot.Studies {
		s := &snapshot.Studies[i]
		if p := s.Study.Study.Spec.Pool; s.Err == nil && s.Status.State == study.Running && p != defaultPool && !slices.Contains(pools, p) {
			pools = append(pools, p)
		}
	}
	if len(pools) == 0 {
		return nil
	}
	return l.c.setUpPools(ctx, pools)
}

// adopt takes a stored study in: wholly where it runs, only its name and state
// where it has ended or cannot be read.
func (l *leader) adopt(ctx context.Context, s *ledger.Records, now time.Time) {
	r := &run{spec: s.Study, status: s.Status}
	l.runs[r.spec.ID] = r
	l.names[r.name()] = r.spec.ID
	switch {
	case s.Err != nil:
		l.breaks(r, s.Err)
	case s.Status.State == study.Running:
		l.load(r, s, now)
		l.recall(ctx, r, s.Trials)
	}
}

// drain folds a stream from its cursor to the last message that it holds now.
// The reader goes on from there. Sequences are compared within one stream alone:
// the reader says where it stands, which is before the first message of a stream
// that was made anew.
func (l *leader) drain(ctx context.Context, s messaging.Stream, from messaging.Cursor) error {
	r, err := l.c.o.Bus.Read(ctx, s, from)
	if err != nil {
		return fmt.Errorf("read stream %s: %w", s, err)
	}
	l.readers = append(l.readers, r)
	last, err := l.last(ctx, s)
	if err != nil {
		return err
	}
	for heard := time.Now(); r.Cursor().Sequence < last; {
		call, cancel := context.WithTimeout(ctx, drainWait)
		entry, err := r.Next(call)
		cancel()
		switch {
		case err == nil:
			heard = time.Now()
			if err := l.drained(ctx, &entry); err != nil {
				return err
			}
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(heard) > callTimeout:
			return fmt.Errorf("drain stream %s up to message %d: %w", s, last, err)
		default: // the last message may have been purged or replaced meanwhile
			if last, err = l.last(ctx, s); err != nil {
				return err
			}
		}
	}
	return l.commit(ctx)
}

// drained applies one entry of a drain.
func (l *leader) drained(ctx context.Context, e *messaging.Entry) error {
	if err := l.entry(ctx, e, time.Now()); err != nil {
		return err
	}
	if l.batch.Full() {
		return l.commit(ctx)
	}
	return nil
}

func (l *leader) last(ctx context.Context, s messaging.Stream) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	last, err := l.c.o.Bus.Last(ctx, s)
	if err != nil {
		return 0, fmt.Errorf("find the end of stream %s: %w", s, err)
	}
	return last, nil
}

// closeReaders leaves the streams; whoever read them has ended.
func (l *leader) closeReaders() {
	for _, r := range l.readers {
		if err := r.Close(); err != nil {
			l.log.Debug("a reader was not closed", telemetry.LogError, err)
		}
	}
}
