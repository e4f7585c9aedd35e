package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Curves are committed once in curvesEvery, and curvesEach for each segment that
// has changed, curvesMost at most, in addition.
const (
	curvesEvery = time.Second
	curvesEach  = 20 * time.Millisecond
	curvesMost  = 20 * time.Second
	// flushTime bounds the last commit of a term.
	flushTime = 2 * time.Second
)

// journal is what the next commit stores: the records that steps have changed, the
// effects that wait until these are durable, and the answers to the commands that
// changed them. The loop owns it.
type journal struct {
	log     *slog.Logger
	metrics *metrics
	letters deadLetters
	writer  *ledger.Writer // nil until the term has fenced the ledger

	batch *ledger.Batch
	// curves are the trials' curves that wait, with the cursor of the reports that
	// they were made from; curved is when the last ones were committed. A program
	// can report often, so they go only now and then, with another commit or alone.
	// What is lost with a leader is read again.
	curves  *ledger.Batch
	curved  time.Time
	held    effects
	replies []func(error)
}

// add puts records into the batch and holds an output's effects back.
func (j *journal) add(r *run, records *ledger.Batch, out *engine.Output) {
	j.batch.Add(records)
	for i := range out.Curves {
		j.curves.PutCurve(r.spec.ID, &out.Curves[i])
	}
	j.held.take(r, out)
}

// read notes how far a stream was read.
func (j *journal) read(s messaging.Stream, c messaging.Cursor) {
	if s == messaging.StreamMetric {
		j.curves.PutCursor(s, c)
	} else {
		j.batch.PutCursor(s, c)
	}
}

// full reports whether what has changed is better committed before more is added.
func (j *journal) full() bool { return j.batch.Full() || j.curves.Bytes() >= ledger.MaxBytes/2 }

// due is when the curves that wait are to be committed; zero where none wait. The
// more there are, the longer they wait: each is written anew however few points it
// has got.
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

// receipt tells a worker what became of a result that no engine has judged.
func (j *journal) receipt(worker string, id messaging.AttemptID, d messaging.Disposition) {
	j.held.controls = append(j.held.controls, receipt(worker, id, d))
}

// cancel tells a worker that an attempt's result is wanted no more.
func (j *journal) cancel(worker string, id messaging.AttemptID, reason string) {
	if worker == messaging.LeaderName {
		return
	}
	j.held.controls = append(j.held.controls, messaging.Control{Kind: messaging.ControlCancel, Worker: worker, AttemptID: id, Reason: reason})
}

// avoid tells a worker to take no more attempts of a study.
func (j *journal) avoid(worker, study, reason string) {
	j.held.controls = append(j.held.controls, avoid(worker, study, reason))
}

// keep has an entry archived with the next commit, as it came: encoded again it
// could be longer than what the dead-letter queue takes.
func (j *journal) keep(e *messaging.Entry, reason string) {
	j.held.archives = append(j.held.archives, archived{e.Subject, reason, e.Raw})
}

// commit makes the batch durable and returns the effects that may go out now.
// Results that are not folded are archived before, while the cursor is still
// behind them. After an error the commands in the batch have been answered.
func (j *journal) commit(ctx context.Context) (effects, error) {
	for _, a := range j.held.archives {
		j.letters.archive(ctx, a.subject, a.reason, a.raw)
	}
	if err := j.store(ctx); err != nil {
		j.reply(err)
		return effects{}, err
	}
	released := j.held
	released.committed = time.Now()
	j.held = effects{}
	j.metrics.released(ctx, &released)
	return released, nil
}

// store commits the batch. While etcd has no space left it waits: nothing is
// suggested or receipted meanwhile, and nothing is lost.
func (j *journal) store(ctx context.Context) error {
	if due := j.due(); !due.IsZero() && !time.Now().Before(due) {
		j.take()
	}
	if j.batch.Len() == 0 {
		return nil
	}
	for {
		start := time.Now()
		err := j.writer.Commit(ctx, j.batch)
		j.metrics.commit.Record(ctx, time.Since(start).Seconds())
		if err == nil {
			j.batch = &ledger.Batch{}
			return nil
		}
		if !errors.Is(err, ledger.ErrNoSpace) {
			return fmt.Errorf("commit to the ledger: %w", err)
		}
		j.log.Error("paused until etcd has space", telemetry.LogError, err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tickEvery):
		}
	}
}

// take puts the curves that wait into the batch.
func (j *journal) take() {
	j.batch.Add(j.curves)
	j.curves, j.curved = &ledger.Batch{}, time.Now()
}

// flush commits the curves that wait, for who reads them after the last leader.
func (j *journal) flush(ctx context.Context) error {
	j.batch = &ledger.Batch{} // the effects of what else there is would get lost
	j.take()
	return j.store(ctx)
}

// reply answers the commands whose changes were in the batch.
func (j *journal) reply(err error) {
	for _, f := range j.replies {
		f(err)
	}
	j.replies = nil
}
