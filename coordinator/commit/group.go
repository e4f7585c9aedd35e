// Package commit collects what the leader's loop has changed and makes it durable in one group.
//
// The order is what makes a crash harmless. Refused results are buried first. Then one transaction
// stores the records together with the cursors of the messages that caused them. Only then is
// released what depends on them: messages to workers, requests to optimisers, and the answers to
// callers. A leader that dies before the transaction has told nobody anything; one that dies after
// it leaves records from which the next leader repeats what was not sent.
package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/deadletter"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/metrics"
	"github.com/fantasia-hpo/fantasia/coordinator/publish"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// How long changed curves wait for their commit: curvesEvery, plus curvesEach for
// each changed segment, up to curvesMost.
const (
	curvesEvery = time.Second
	curvesEach  = 20 * time.Millisecond
	curvesMost  = 20 * time.Second
	// FlushTime bounds the last commit of a term.
	FlushTime = 2 * time.Second
	// fullEvery is how often a commit is tried again while etcd has no space left.
	fullEvery = time.Second
)

// Streams are the streams whose messages the records and their cursors are committed with, in the
// order in which a takeover reads them: claims come first, so that each result finds its claim
// applied.
var Streams = [...]messaging.Stream{messaging.StreamClaim, messaging.StreamResult}

// Writer writes to the ledger in the name of a term: a *ledger.Writer. Its methods fail once another
// leader has fenced the term.
type Writer interface {
	Commit(ctx context.Context, b *ledger.Batch) error
	Create(ctx context.Context, s *record.Study, b *ledger.Batch) error
}

// Group collects what the next commit stores: the records that steps have changed, what waits
// until these are durable, and the replies to the commands that changed them. The loop owns it.
type Group struct {
	log     *slog.Logger
	metrics *metrics.Metrics
	letters *deadletter.Queue
	writer  Writer // nil until the term has fenced the ledger

	batch *ledger.Batch
	// curves are the curves to commit, with the cursor of the reports in them; curved
	// is when curves were last committed. Programs can report often, so curves are
	// committed only from time to time, with another commit or alone. If a leader
	// dies, the next one reads the lost reports again from the stream.
	curves *ledger.Batch
	curved time.Time
	// traced is the time until which the ledger knows that spans were exported.
	traced  time.Time
	waiting Released
	replies []func(error)
	// committed are the cursors in the ledger.
	committed map[messaging.Stream]messaging.Cursor
}

// New returns an empty group, which buries results in letters.
func New(log *slog.Logger, m *metrics.Metrics, letters *deadletter.Queue) *Group {
	return &Group{
		log: log, metrics: m, letters: letters, batch: &ledger.Batch{}, curves: &ledger.Batch{},
		committed: map[messaging.Stream]messaging.Cursor{},
	}
}

// Resume continues where the ledger stands: with the cursors of the streams, and the time until
// which spans were exported.
func (g *Group) Resume(cursors map[messaging.Stream]messaging.Cursor, traced time.Time) {
	for _, s := range Streams {
		g.committed[s] = cursors[s]
	}
	g.traced = traced
}

// WriteWith sets the writer of the term, which has fenced the ledger. It MUST be called BEFORE
// anything is stored.
func (g *Group) WriteWith(w Writer) { g.writer = w }

// Create stores a new study at once, with what the batch holds of it.
func (g *Group) Create(ctx context.Context, s *record.Study, b *ledger.Batch) error {
	return g.writer.Create(ctx, s, b)
}

// Cursors returns how far the ledger says that the streams were read.
func (g *Group) Cursors() map[messaging.Stream]messaging.Cursor { return maps.Clone(g.committed) }

// Messages are those that the next commit releases. The caller may add to them.
func (g *Group) Messages() *publish.Messages { return &g.waiting.Messages }

// Answer calls reply with nil once what is in the group is durable, or with the error if it cannot
// be stored.
func (g *Group) Answer(reply func(error)) { g.replies = append(g.replies, reply) }

// Add puts the records of a study's output into the group, and holds back what depends on them.
func (g *Group) Add(s *record.Study, records *ledger.Batch, out *engine.Output) {
	g.batch.Add(records)
	for i := range out.Curves {
		g.curves.PutCurve(s.ID, &out.Curves[i])
	}
	g.waiting.add(s, out)
}

// Delete deletes a study with its records and its messages.
func (g *Group) Delete(id, name string) {
	g.batch.DeleteStudy(id, name)
	g.curves.Forget(id)
	g.waiting.Purged = append(g.waiting.Purged, id)
}

// MoveCursor records how far a stream has been read.
func (g *Group) MoveCursor(s messaging.Stream, c messaging.Cursor) {
	if s == messaging.StreamMetric {
		g.curves.PutCursor(s, c)
	} else {
		g.batch.PutCursor(s, c)
	}
}

// Exported records that the spans of the trials that were folded until then have been
// exported.
func (g *Group) Exported(until time.Time) {
	if until.After(g.traced) {
		g.traced = until
		g.batch.PutTraced(until)
	}
}

// Full reports whether the changes should be committed before more are added.
func (g *Group) Full() bool { return g.batch.Full() || g.curves.Bytes() >= ledger.MaxBytes/2 }

// Due returns when the waiting curves are to be committed; zero if none wait. The
// more there are, the longer they wait, since a segment is rewritten as a whole
// even for a single new point.
func (g *Group) Due() time.Time {
	n := g.curves.Len()
	switch {
	case n == 0:
		return time.Time{}
	case g.Full():
		return g.curved
	default:
		return g.curved.Add(curvesEvery + min(time.Duration(n)*curvesEach, curvesMost))
	}
}

// Bury buries an entry with the next commit, as it was received: encoded again, it
// could be too large for the dead-letter queue. It is for a study, or for none if that is empty.
func (g *Group) Bury(e *messaging.Entry, study, reason string) {
	r := e.Result
	letter := deadletter.Letter{Study: study, Subject: e.Subject, Reason: reason, Raw: e.Raw}
	g.waiting.burials = append(g.waiting.burials, burial{letter, r.Worker, r.AttemptID})
}

// BuryNow buries a message at once. It returns false if there is nowhere to keep the message: then
// its sender MUST NOT get a receipt.
func (g *Group) BuryNow(ctx context.Context, l deadletter.Letter) (kept bool) {
	return g.letters.Bury(ctx, g.batch, l)
}

// ForgetAside deletes a message that was set aside, once the dead-letter queue has it.
func (g *Group) ForgetAside(key string) { g.batch.DeleteAside(key) }

// Commit makes the group durable and returns what may now be done. If it fails, the commands in
// the group still wait: the caller MUST answer them with Reply.
func (g *Group) Commit(ctx context.Context) (Released, error) {
	for i := range g.waiting.burials {
		b := &g.waiting.burials[i]
		if !g.letters.Bury(ctx, g.batch, b.Letter) {
			g.waiting.Withhold(b.worker, b.id)
		}
	}
	if err := g.store(ctx); err != nil {
		return Released{}, err
	}
	released := g.waiting
	released.Committed = time.Now()
	g.waiting = Released{}
	g.metrics.Released(ctx, &released.Messages)
	return released, nil
}

// store commits the batch. It waits while etcd has no space left: until then the
// leader sends no assignment and no receipt, and nothing is lost.
func (g *Group) store(ctx context.Context) error {
	if due := g.Due(); !due.IsZero() && !time.Now().Before(due) {
		g.IncludeCurves()
	}
	if g.batch.Len() == 0 {
		return nil
	}
	for {
		start := time.Now()
		failpoint.Reach(failpoint.LeaderBeforeCommit)
		if len(g.replies) > 0 {
			failpoint.Reach(failpoint.CallBeforeCommit)
		}
		err := g.write(ctx)
		g.metrics.Committed(ctx, time.Since(start))
		if err == nil {
			failpoint.Reach(failpoint.LeaderAfterCommit)
			if len(g.replies) > 0 {
				failpoint.Reach(failpoint.CallAfterCommit)
			}
			g.stored()
			return nil
		}
		if !errors.Is(err, ledger.ErrNoSpace) {
			return fmt.Errorf("commit to the ledger: %w", err)
		}
		g.log.Error("paused until etcd has free space", telemetry.LogError, err)
		if !backoff.Sleep(ctx, fullEvery) {
			return ctx.Err()
		}
	}
}

// write commits the batch. If the leader is told to stop meanwhile, the commit may still end:
// one that is cut off has an unknown outcome, and then the last measurements cannot be stored.
func (g *Group) write(ctx context.Context) error {
	if ctx.Err() != nil { // nothing more begins
		return g.writer.Commit(ctx, g.batch)
	}
	rest, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if !errors.Is(cause, context.Canceled) { // the lease is lost, or the term has failed
			cancel(cause)
			return
		}
		time.AfterFunc(FlushTime, func() { cancel(cause) })
	})
	defer stop()
	return g.writer.Commit(rest, g.batch)
}

// stored notes what the batch has made durable, and begins another.
func (g *Group) stored() {
	for _, s := range Streams {
		if c, ok := g.batch.Cursor(s); ok {
			g.committed[s] = c
		}
	}
	g.batch = &ledger.Batch{}
}

// IncludeCurves has the waiting curves stored by the next commit.
func (g *Group) IncludeCurves() {
	g.batch.Add(g.curves)
	g.curves, g.curved = &ledger.Batch{}, time.Now()
}

// Flush commits the waiting curves at the end of a term, for readers who come
// before the next leader does, and until when spans have been exported.
func (g *Group) Flush(ctx context.Context, exported time.Time) error {
	g.batch = &ledger.Batch{} // drop all other records: their effects would get lost
	g.IncludeCurves()
	g.Exported(exported)
	return g.store(ctx)
}

// Reply answers the commands whose changes were in the group.
func (g *Group) Reply(err error) {
	for _, f := range g.replies {
		f(err)
	}
	g.replies = nil
}
