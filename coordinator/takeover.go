package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// takeOver makes this replica the shard's only leader: it fences older leaders, loads
// the ledger, and applies everything that was published before the fence. The order is what
// makes it safe:
//
//  1. Fence the ledger and the broker, BEFORE anything is read. A leader that was stopped or cut off
//     may not know that it is replaced, and nothing of it may be stored or published after this
//     replica has read what there is.
//  2. Load the ledger, and adopt the running studies. Their engines do nothing yet: see engine.Tick.
//  3. Read claims and results to their ends, BEFORE any time passes for the studies. Otherwise an
//     attempt could be handed out again that somebody runs or has finished.
//  4. Open the studies with a first Tick, and commit what follows. Only now are suggestions asked for.
//
// Reports are not read to their end: there may be many, and none of them keeps a trial from ending.
//
// If it fails, the term ends, and whoever leads next begins again. Each step can be repeated.
func (l *leader) takeOver(ctx context.Context, handBack bool) error {
	failpoint.Reach(failpoint.TakeoverElected)
	if err := l.fence(ctx); err != nil {
		return err
	}
	failpoint.Reach(failpoint.TakeoverFenced)
	l.spans.SetEpoch(l.writer.Epoch())
	snapshot, err := l.c.ledger.Load(ctx)
	if err != nil {
		return fmt.Errorf("load the ledger: %w", err)
	}
	failpoint.Reach(failpoint.TakeoverLoaded)
	if err := errors.Join(snapshot.Lost...); err != nil {
		l.log.Warn("positions in streams are unreadable: reading these streams from the start", telemetry.LogError, err)
	}
	l.group.Resume(snapshot.Cursors, snapshot.Traced)
	if err := l.setUp(ctx, snapshot); err != nil {
		return err
	}
	// What earlier leaders set aside counts against the bounds, and goes to the dead letters before anything new.
	n, bytes, err := l.c.ledger.AsideSize(ctx)
	if err != nil {
		return err
	}
	l.letters.Resume(n, bytes)
	now := time.Now()
	for i := range snapshot.Studies {
		if r := l.studies.Adopt(&snapshot.Studies[i], now); r.Running() {
			l.spans.Recall(ctx, &r.Spec, snapshot.Studies[i].Trials, snapshot.Traced)
		}
	}
	for _, s := range commit.Streams {
		if err := l.streams.Drain(ctx, s, snapshot.Cursors[s], l.commit); err != nil {
			return err
		}
	}
	failpoint.Reach(failpoint.TakeoverDrained)
	if _, err := l.streams.Open(ctx, messaging.StreamMetric, snapshot.Cursors[messaging.StreamMetric]); err != nil {
		return err
	}
	now = time.Now()
	for _, r := range l.studies.Ordered() {
		if !r.Running() {
			continue
		}
		if handBack && !r.ByClients() { // clients run in processes of their own
			l.studies.Step(r, engine.HandBackAll{At: now})
		}
		l.studies.Step(r, engine.Tick{At: now}) // opens the study: see engine.Tick
	}
	return l.commit(ctx)
}

// fence prevents every older leader from writing to the ledger and from publishing. The ledger comes first: it
// has the epoch with which the broker is fenced, and a commit that an earlier leader has not applied yet.
func (l *leader) fence(ctx context.Context) (err error) {
	if l.writer, err = l.c.ledger.Lead(ctx, ledger.Fence{Key: l.term.Key, Revision: l.term.Epoch}); err != nil {
		return fmt.Errorf("fence the ledger: %w", err)
	}
	l.group.WriteWith(l.writer)
	failpoint.Reach(failpoint.TakeoverLedgerFenced)
	ctx, cancel := context.WithTimeout(ctx, 3*callTimeout)
	defer cancel()
	// Streams must exist BEFORE they can be fenced. The default pool exists even before any study names it, so that workers can wait.
	if err := l.c.o.Bus.Setup(ctx, []string{study.DefaultPool}); err != nil {
		return fmt.Errorf("set the streams up: %w", err)
	}
	return l.fenceBus(ctx)
}

// rolledBack says why a leader that etcd has elected cannot lead: NATS has seen a later epoch
// than its own.
type rolledBack struct{ seen, own int64 }

// Error says what may have happened, and what to do.
func (e *rolledBack) Error() string {
	return fmt.Sprintf("NATS has seen epoch %d, but etcd gave this leader only epoch %d: etcd was replaced or restored to an earlier time, "+
		"or the coordinators of another etcd use this NATS. If no others do, write the ledger anew with "+
		"fantasia backup and fantasia restore --force (docs/operate/operate.md#backups)", e.seen, e.own)
}

// fenceBus prevents older leaders from publishing. The epochs of a restored ledger may be
// lower than those that the broker has seen; its first leader raises them. Nobody else
// does: the two epochs could be those of two installations, of which only one may go on.
func (l *leader) fenceBus(ctx context.Context) error {
	w := l.writer
	err := l.c.o.Bus.Fence(ctx, w.Epoch())
	for fenced := new(messaging.Fenced); errors.As(err, &fenced); err = l.c.o.Bus.Fence(ctx, w.Epoch()) {
		if !w.Restored() || !mutant.On(mutant.Raise) {
			// A leader that etcd has replaced meanwhile is fenced for a good reason.
			if leads, errFence := w.HasFence(ctx); errFence == nil && leads {
				return fmt.Errorf("%w: %w", &rolledBack{fenced.Stored, fenced.Own}, err)
			}
			break
		}
		l.log.Warn("etcd was restored: raising the epoch above the one that NATS has seen", "seen", fenced.Stored, "own", fenced.Own)
		if err := w.Raise(ctx, fenced.Stored); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("fence older leaders: %w", err)
	}
	if w.Restored() {
		return w.EndRestore(ctx)
	}
	return nil
}

// setUp creates the pools of the running studies, so that their workers can wait for
// assignments.
func (l *leader) setUp(ctx context.Context, snapshot *ledger.Snapshot) error {
	var pools []string
	for i := range snapshot.Studies {
		s := &snapshot.Studies[i]
		if s.Err != nil || s.Status.State != study.Running {
			continue
		}
		if p := s.Study.Definition.Spec.Pool; p != study.DefaultPool && !slices.Contains(pools, p) {
			pools = append(pools, p)
		}
	}
	if len(pools) == 0 {
		return nil
	}
	return l.c.setUpPools(ctx, pools)
}
