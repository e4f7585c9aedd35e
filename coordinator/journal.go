package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
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
	// flushTime bounds the last commit of a term.
	flushTime = 2 * time.Second
)

// journal collects what the next commit stores: the records that steps have changed,
// the effects that wait until these are durable, and the replies to the commands
// that changed them. The loop owns it.
type journal struct {
	log         *slog.Logger
	metrics     *metrics
	deadLetters *deadLetters
	writer      *ledger.Writer // nil until the term has fenced the ledger

	batch *ledger.Batch
	// curves are the curves to commit, with the cursor of the reports in them; curved
	// is when curves were last committed. Programs can report often, so curves are
	// committed only from time to time, with another commit or alone. If a leader
	// dies, the next one reads the lost reports again from the stream.
	curves *ledger.Batch
	curved time.Time
	// traced is the time until which the ledger knows that spans were exported.
	traced  time.Time
	held    effects
	replies []func(error)
	// committed are the cursors in the ledger.
	committed map[messaging.Stream]messaging.Cursor
}

// add puts records into the batch and holds back an output's effects.
func (j *journal) add(r *run, records *ledger.Batch, out *engine.Output) {
	j.batch.Add(records)
	for i := range out.Curves {
		j.curves.PutCurve(r.spec.ID, &out.Curves[i])
	}
	j.held.takeEffects(r, out)
}

// moveCursor records how far a stream has been read.
func (j *journal) moveCursor(s messaging.Stream, c messaging.Cursor) {
	if s == messaging.StreamMetric {
		j.curves.PutCursor(s, c)
	} else {
		j.batch.PutCursor(s, c)
	}
}

// exported records that the spans of the trials that were folded until then have been
// exported.
func (j *journal) exported(until time.Time) {
	if until.After(j.traced) {
		j.traced = until
		j.batch.PutTraced(until)
	}
}

// full reports whether the changes should be committed before more are added.
func (j *journal) full() bool { return j.batch.Full() || j.curves.Bytes() >= ledger.MaxBytes/2 }

// due returns when the waiting curves are to be committed; zero if none wait. The
// more there are, the longer they wait, since a segment is rewritten as a whole
// even for a single new point.
func (j *journal) due() time.Time {
	n := j.curves.Len()
	switch {
	case n == 0:
		return time.Time{}
	case j.full():
		return j.curved
	default:
		return j.curved.Add(curvesEvery + min(time.Duration(n)*curvesEach, curvesMost))
	}
}

// keep buries an entry with the next commit, as it was received: encoded again, it
// could be too large for the dead-letter queue.
func (j *journal) keep(e *messaging.Entry, study, reason string) {
	r := e.Result
	j.held.burials = append(j.held.burials, burial{deadLetter{study, e.Subject, reason, e.Raw}, r.Worker, r.AttemptID})
}

// commit makes the batch durable and returns the effects that may now be carried
// out. It buries refused results BEFORE, while the cursor is still behind them.
// If it fails, it has answered the commands in the batch.
func (j *journal) commit(ctx context.Context) (effects, error) {
	for i := range j.held.burials {
		a := &j.held.burials[i]
		if !j.deadLetters.bury(ctx, j.batch, a.deadLetter) {
			j.held.Withhold(a.worker, a.id)
		}
	}
	if err := j.store(ctx); err != nil {
		j.reply(endedTerm(ctx, err))
		return effects{}, err
	}
	released := j.held
	released.committed = time.Now()
	j.held = effects{}
	j.metrics.released(ctx, &released.Messages)
	return released, nil
}

// store commits the batch. It waits while etcd has no space left: until then the
// leader sends no assignment and no receipt, and nothing is lost.
func (j *journal) store(ctx context.Context) error {
	if due := j.due(); !due.IsZero() && !time.Now().Before(due) {
		j.takeCurves()
	}
	if j.batch.Len() == 0 {
		return nil
	}
	for {
		start := time.Now()
		failpoint.Reach(failpoint.LeaderBeforeCommit)
		if len(j.replies) > 0 {
			failpoint.Reach(failpoint.CallBeforeCommit)
		}
		err := j.write(ctx)
		j.metrics.commit.Record(ctx, time.Since(start).Seconds())
		if err == nil {
			failpoint.Reach(failpoint.LeaderAfterCommit)
			if len(j.replies) > 0 {
				failpoint.Reach(failpoint.CallAfterCommit)
			}
			j.stored()
			return nil
		}
		if !errors.Is(err, ledger.ErrNoSpace) {
			return fmt.Errorf("commit to the ledger: %w", err)
		}
		j.log.Error("paused until etcd has free space", telemetry.LogError, err)
		if !backoff.Sleep(ctx, tickEvery) {
			return ctx.Err()
		}
	}
}

// write commits the batch. If the leader is told to stop meanwhile, the commit may still end:
// one that is cut off has an unknown outcome, and then the last measurements cannot be stored.
func (j *journal) write(ctx context.Context) error {
	if ctx.Err() != nil { // nothing more begins
		return j.writer.Commit(ctx, j.batch)
	}
	rest, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if !errors.Is(cause, context.Canceled) { // the lease is lost, or the term has failed
			cancel(cause)
			return
		}
		time.AfterFunc(flushTime, func() { cancel(cause) })
	})
	defer stop()
	return j.writer.Commit(rest, j.batch)
}

// stored notes what the batch has made durable, and begins another.
func (j *journal) stored() {
	for _, s := range streams {
		if c, ok := j.batch.Cursor(s); ok {
			j.committed[s] = c
		}
	}
	j.batch = &ledger.Batch{}
}

// takeCurves moves the waiting curves into the batch.
func (j *journal) takeCurves() {
	j.batch.Add(j.curves)
	j.curves, j.curved = &ledger.Batch{}, time.Now()
}

// flush commits the waiting curves at the end of a term, for readers who come
// before the next leader does, and until when spans have been exported.
func (j *journal) flush(ctx context.Context, exported time.Time) error {
	j.batch = &ledger.Batch{} // drop all other records: their effects would get lost
	j.takeCurves()
	j.exported(exported)
	return j.store(ctx)
}

// reply answers the commands whose changes were in the batch.
func (j *journal) reply(err error) {
	for _, f := range j.replies {
		f(err)
	}
	j.replies = nil
}
