package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const (
	// replyTimeout limits one answer of the broker to a claim, an ack or a nak.
	replyTimeout = 5 * time.Second
	// claimTimeout limits all tries of one claim. It is below the two minutes for which
	// JetStream recognises a repeated message id.
	claimTimeout = time.Minute
	// refuseDelay reserves an assignment refused here for other workers.
	refuseDelay = 5 * time.Second
	// fullPause is the pause before a disk that took no results is tried again.
	fullPause = 5 * time.Second
	// warnEvery is how often a worker says that its disk takes no results.
	warnEvery = time.Minute
)

// errUnwanted means that a slot's evaluator no longer wants an attempt.
var errUnwanted = errors.New("no attempt is wanted any more")

// slot evaluates one assignment after another until ctx ends.
func (r *run) slot(ctx context.Context, n int) (err error) {
	ev, err := r.evaluator(n)
	if err != nil {
		return fmt.Errorf("slot %d: %w", n, err)
	}
	defer r.files.leave(n) // once its program has ended
	defer func() {
		if cerr := ev.Close(r.hard); cerr != nil {
			err = errors.Join(err, fmt.Errorf("slot %d: close: %w", n, cerr))
		}
	}()
	r.resume(n, ev)
	pause := backoff.New(messaging.RetryFirst, messaging.RetryMost)
	for r.sender.spoolSpace(ctx) == nil {
		if ctx.Err() == nil && !r.writable() {
			backoff.Sleep(ctx, fullPause)
			continue
		}
		d, err := r.fetch(ctx, ev)
		switch {
		case err == nil:
			pause.Reset()
			r.handle(ctx, n, ev, d)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errUnwanted):
			pause.Reset()
		case errors.Is(err, messaging.ErrClosed):
			return fmt.Errorf("slot %d: fetch an assignment: %w", n, err)
		default:
			r.options.Logger.Warn("cannot fetch an assignment; retrying", telemetry.LogError, err)
			pause.Wait(ctx)
		}
	}
	return nil
}

// writable reports whether results can be written to disk: otherwise no evaluation begins,
// since its result could be lost.
func (r *run) writable() bool {
	err := r.sender.spool.Check()
	if err == nil {
		return true
	}
	r.mu.Lock()
	again := time.Since(r.unwritable) < warnEvery
	if !again {
		r.unwritable = time.Now()
	}
	r.mu.Unlock()
	if !again {
		r.options.Logger.Error("taking no trials until results can be written to disk", telemetry.LogError, err)
	}
	return false
}

// fetch waits for an assignment while the evaluator wants one; it returns errUnwanted
// when the evaluator no longer does.
func (r *run) fetch(ctx context.Context, ev evaluation.Evaluator) (messaging.Delivery, error) {
	gate, ok := ev.(evaluation.Gate)
	if !ok {
		return r.options.Bus.Fetch(ctx)
	}
	wanted, stop, err := gate.Await(ctx)
	if err != nil {
		return nil, fmt.Errorf("await an evaluator: %w", err)
	}
	defer stop()
	d, err := r.options.Bus.Fetch(wanted)
	if err != nil && wanted.Err() != nil {
		err = errUnwanted
	}
	return d, err
}

// handle processes one delivery.
func (r *run) handle(ctx context.Context, slot int, ev evaluation.Evaluator, d messaging.Delivery) {
	if err := d.Err(); err != nil {
		r.options.Logger.Warn("cannot read an assignment", telemetry.LogError, err)
		r.answer(ctx, "terminate", func(ctx context.Context) error { return d.Term(ctx, err.Error()) })
		return
	}
	a := d.Assignment()
	nak := func(delay time.Duration) {
		r.answer(ctx, "give back", func(ctx context.Context) error { return d.Nak(ctx, delay) })
	}
	ack := func() { r.answer(ctx, "acknowledge", d.Ack) }
	switch {
	case r.claims.Has(a.AttemptID):
		r.offeredAgain(ctx, slot, ev, a, ack)
		return
	case r.registry.avoids(a.Study):
		nak(refuseDelay)
		return
	case ctx.Err() != nil:
		nak(0)
		return
	case !r.writable(): // the disk may have filled up while the slot waited
		nak(0)
		return
	}
	if err := ev.Accept(a); err != nil {
		r.refuse(a, err)
		nak(refuseDelay)
		return
	}
	// The attempt outlives ctx: leaving ends it with a cause.
	work, end, ok := r.registry.begin(remoteContext(context.WithoutCancel(ctx), a.TraceContext), a.StudyName, a.AttemptID)
	if !ok {
		// Another slot is claiming it, and may fail: then it has to come again. Without an
		// answer it does so late enough not to use up its deliveries. Once it is claimed,
		// the journal has it.
		return
	}
	defer r.files.end(a)
	defer end()
	r.files.begin(a)
	claimed := time.Now()
	claiming, span := r.claimSpan(work, slot, a, claimed)
	defer span.End()
	err := r.claim(claiming, slot, ev, a, claimed)
	switch {
	case err == nil:
		failpoint.Reach(failpoint.WorkerBeforeAck)
		ack()
		failpoint.Reach(failpoint.WorkerAfterAck)
		r.files.enter(a, slot)
		started := time.Now() // one span ends where the next begins
		span.End(trace.WithTimestamp(started))
		r.evaluate(work, slot, ev, a, claimed, started)
	case errors.Is(err, messaging.ErrClaimed):
		span.SetAttributes(telemetry.AttrReason.String("claimed elsewhere"))
		ack()
	default:
		span.RecordError(err)
		// The claim may be stored. The assignment is not acknowledged, so it is
		// delivered again, and the next claim shows.
		r.options.Logger.Warn("cannot claim an assignment", telemetry.LogStudy, a.StudyName,
			telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt, telemetry.LogError, err)
	}
}

// answer answers a delivery. If that fails, the assignment is delivered again.
func (r *run) answer(ctx context.Context, what string, send func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTimeout)
	defer cancel()
	if err := send(ctx); err != nil {
		r.options.Logger.Warn("cannot "+what+" an assignment: it will be delivered again", telemetry.LogError, err)
	}
}

// refuse logs, once for each study, that its command is not run here.
func (r *run) refuse(a *messaging.Assignment, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.refused[a.Study]; known || len(r.refused) >= maxAvoided {
		return
	}
	r.refused[a.Study] = struct{}{}
	r.options.Logger.Error("this worker takes no trials of the study", telemetry.LogStudy, a.StudyName, telemetry.LogReason, err)
}

// offeredAgain answers an assignment that was claimed here before and must not run again. If
// the broker has lost the claim, the leader has never read it and offers the attempt for ever.
// So an attempt that has come to nothing here is claimed once more: the leader then learns
// from a heartbeat that it is lost.
func (r *run) offeredAgain(ctx context.Context, slot int, ev evaluation.Evaluator, a *messaging.Assignment, ack func()) {
	if !r.registry.runs(a.AttemptID) && !r.sender.has(a.AttemptID) {
		if err := r.claim(ctx, slot, ev, a, time.Now()); err != nil && !errors.Is(err, messaging.ErrClaimed) {
			r.options.Logger.Warn("cannot claim an attempt once more", telemetry.LogStudy, a.StudyName,
				telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt, telemetry.LogError, err)
			return // it is offered again
		}
	}
	ack()
}

// claim claims an attempt. A try without an answer is repeated with the same id, so
// that a claim that was stored is confirmed.
func (r *run) claim(ctx context.Context, slot int, ev evaluation.Evaluator, a *messaging.Assignment, at time.Time) error {
	c := &messaging.Claim{
		Version: messaging.SchemaVersion, AttemptID: a.AttemptID, Pool: a.Pool, Worker: r.options.Name, Slot: slot,
		At: at, Site: r.site(slot, ev, a).With(messaging.Site{}), TraceContext: traceOf(ctx),
	}
	id, pause := uuid.NewString(), backoff.New(messaging.RetryFirst, messaging.RetryMost)
	deadline := at.Add(claimTimeout)
	for {
		// A process that was stopped meanwhile may hold an assignment of an attempt that has
		// ended long ago, and whose claim was deleted.
		if time.Now().After(deadline) {
			return errors.New("claim: the assignment was fetched too long ago")
		}
		failpoint.Reach(failpoint.WorkerBeforeClaim)
		// A cancellation does not interrupt a try, which would leave its result
		// unknown.
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTimeout)
		err := r.options.Bus.Claim(try, id, c)
		cancel()
		switch {
		case err == nil, errors.Is(err, messaging.ErrClaimed) && !mutant.On(mutant.Claim):
			failpoint.Reach(failpoint.WorkerAfterClaim)
			if err := r.claims.Add(a.AttemptID); err != nil {
				r.options.Logger.Error("cannot write a claim to disk", telemetry.LogError, err)
			}
			return nil
		case errors.Is(err, messaging.ErrClaimed), errors.Is(err, messaging.ErrClosed):
			return err
		case ctx.Err() != nil || time.Now().After(deadline):
			return fmt.Errorf("claim: %w", err)
		}
		pause.Wait(ctx)
	}
}
