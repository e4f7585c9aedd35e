package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// effects are what is to be done once the records that led to it are durable;
// but archives, which come before.
type effects struct {
	publish  []outgoing
	withdraw []*messaging.Assignment
	controls []messaging.Control
	purge    []string // studies by id
	archives []engine.Archive
	ended    []endedTrial
	asks     []askOf
	// committed is when the records were durable: since then what is to be
	// published is.
	committed time.Time
}

type endedTrial struct {
	run   *run
	trial record.Trial
}

type askOf struct {
	run *run
	ask *engine.Ask
}

// take adds an output's effects.
func (e *effects) take(r *run, out *engine.Output) {
	for _, a := range out.Publish {
		e.publish = append(e.publish, outgoing{Assignment: a})
	}
	e.withdraw = append(e.withdraw, out.Withdraw...)
	for _, c := range out.Cancels {
		e.controls = append(e.controls, messaging.Control{Kind: messaging.ControlCancel, Worker: c.Worker, AttemptID: c.Attempt, Reason: c.Reason})
	}
	for _, a := range out.Avoids {
		e.controls = append(e.controls, avoid(a.Worker, r.spec.ID, a.Reason))
	}
	for _, p := range out.Receipts {
		e.controls = append(e.controls, receipt(p.Worker, p.Attempt, p.Disposition))
	}
	e.archives = append(e.archives, out.Archives...)
	for _, t := range out.Ended {
		e.ended = append(e.ended, endedTrial{r, t})
	}
	if out.Ask != nil {
		e.asks = append(e.asks, askOf{r, out.Ask})
	}
}

func receipt(worker string, id messaging.AttemptID, d engine.Disposition) messaging.Control {
	return messaging.Control{Kind: messaging.ControlReceipt, Worker: worker, AttemptID: id, Disposition: string(d)}
}

func avoid(worker, study, reason string) messaging.Control {
	return messaging.Control{Kind: messaging.ControlAvoid, Worker: worker, AttemptID: messaging.AttemptID{Study: study}, Reason: reason}
}

// archive puts a message that changes nothing into the dead-letter queue. It is
// done before the cursor moves, so that a crash archives twice rather than never.
func (l *leader) archive(ctx context.Context, subject, reason string, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := l.c.o.Bus.Archive(ctx, subject, reason, raw); err != nil {
		return fmt.Errorf("put a message into the dead-letter queue: %w", err)
	}
	return nil
}

// archiveResults archives the results that a step did not fold.
func (l *leader) archiveResults(ctx context.Context, archives []engine.Archive) error {
	for _, a := range archives {
		raw, err := json.Marshal(a.Result)
		if err != nil {
			return fmt.Errorf("encode a late result: %w", err)
		}
		if err := l.archive(ctx, a.Result.Subject(l.c.o.Shard), a.Reason, raw); err != nil {
			return err
		}
	}
	return nil
}
