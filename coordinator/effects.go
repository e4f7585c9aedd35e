package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// effects are what is to be done once the records that led to it are durable;
// but archives, which come before.
type effects struct {
	publish  []outgoing
	withdraw []*messaging.Assignment
	controls []messaging.Control
	purge    []string // studies by id
	archives []archived
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

// archived is a message for the dead-letter queue, as it came.
type archived struct {
	subject, reason string
	raw             []byte
}

type askOf struct {
	run *run
	ask *engine.Ask
}

// take adds an output's effects, but for its archives.
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
	err := l.bury(ctx, subject, reason, raw)
	if errors.Is(err, messaging.ErrTooLarge) {
		err = l.bury(ctx, subject, "cut short: "+reason, raw[:min(len(raw), maxCut)])
	}
	switch {
	case errors.Is(err, messaging.ErrTooLarge): // it would be so for every leader
		l.log.Error("a message does not fit the dead-letter queue", "subject", subject, "bytes", len(raw), telemetry.LogError, err)
		return nil
	case err != nil:
		return fmt.Errorf("put a message into the dead-letter queue: %w", err)
	default:
		return nil
	}
}

// maxCut is how many bytes are archived of a message that the dead-letter queue
// does not take as a whole.
const maxCut = 4 << 10

func (l *leader) bury(ctx context.Context, subject, reason string, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return l.c.o.Bus.Archive(ctx, subject, reason, raw)
}

// archiveResults archives the results that were not folded.
func (l *leader) archiveResults(ctx context.Context, archives []archived) error {
	for _, a := range archives {
		if err := l.archive(ctx, a.subject, a.reason, a.raw); err != nil {
			return err
		}
	}
	return nil
}
