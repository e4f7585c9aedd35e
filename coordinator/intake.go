package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// noSuchStudy is the reason sent to workers whose message names an unknown study.
const noSuchStudy = "the study does not exist"

// drainWait is how long a drain waits for an entry before it checks again whether
// the stream still has one.
const drainWait = 2 * time.Second

// streamBus is the part of the bus that an intake needs.
type streamBus interface {
	Read(ctx context.Context, s messaging.Stream, from messaging.Cursor) (messaging.Reader, error)
	Last(ctx context.Context, s messaging.Stream) (uint64, error)
}

// intake reads what workers publish and passes it to their studies' engines. The
// loop owns it, except for follow.
type intake struct {
	log     *slog.Logger
	bus     streamBus
	studies *studies
	journal *journal
	trial   func(ctx context.Context, study string, number int) (record.Trial, error) // reads the ledger
	curve   func(ctx context.Context, study string, trial int) (*curve.Curve, error)  // reads the ledger
	readers []messaging.Reader
}

// drain applies a stream's messages from its cursor to the last one that it holds
// now. The reader continues from there. Sequence numbers are only comparable within
// one stream, so drain uses the reader's own cursor: if the stream was recreated,
// that is before its first message.
func (i *intake) drain(ctx context.Context, s messaging.Stream, from messaging.Cursor, commit func(context.Context) error) error {
	r, err := i.open(ctx, s, from)
	if err != nil {
		return err
	}
	last, err := i.last(ctx, s)
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
			if err := i.entry(ctx, &entry, heard); err != nil {
				return err
			}
			if i.journal.full() {
				if err := commit(ctx); err != nil {
					return err
				}
			}
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(heard) > callTimeout:
			return fmt.Errorf("drain stream %s up to message %d: %w", s, last, err)
		default: // the last message may have been purged or replaced meanwhile
			if last, err = i.last(ctx, s); err != nil {
				return err
			}
		}
	}
	return commit(ctx)
}

// open makes a reader that continues from a stream's cursor.
func (i *intake) open(ctx context.Context, s messaging.Stream, from messaging.Cursor) (messaging.Reader, error) {
	r, err := i.bus.Read(ctx, s, from)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", s, err)
	}
	i.readers = append(i.readers, r)
	return r, nil
}

func (i *intake) last(ctx context.Context, s messaging.Stream) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	last, err := i.bus.Last(ctx, s)
	if err != nil {
		return 0, fmt.Errorf("find the end of stream %s: %w", s, err)
	}
	return last, nil
}

// follow posts a stream's entries to the loop, in order, until ctx ends.
func (i *intake) follow(ctx context.Context, r messaging.Reader, post inbox.Post) error {
	for {
		entry, err := r.Next(ctx)
		if err != nil {
			return fmt.Errorf("wait for the next entry: %w", err)
		}
		if !post(ctx, func(ctx context.Context, now time.Time) error { return i.entry(ctx, &entry, now) }) {
			return nil
		}
	}
}

// close closes the readers. Their followers MUST have ended BEFORE.
func (i *intake) close() {
	for _, r := range i.readers {
		if err := r.Close(); err != nil {
			i.log.Debug("could not close a reader", telemetry.LogError, err)
		}
	}
}

// entry applies one entry and moves its stream's cursor with it.
func (i *intake) entry(ctx context.Context, e *messaging.Entry, now time.Time) error {
	var err error
	switch {
	case e.Err != nil:
		err = i.poison(ctx, e, now)
	case e.Claim != nil:
		err = i.claim(ctx, e.Claim, now)
	case e.Result != nil:
		err = i.result(ctx, e, now)
	case e.Measurement != nil:
		err = i.measurement(ctx, e.Measurement, now)
	}
	if err != nil {
		return err
	}
	i.journal.moveCursor(e.Stream, e.Cursor)
	return nil
}

// poison buries a message that cannot be decoded. If it could bury a result, it
// sends a receipt, so that the worker stops sending it. It tells the engine about a claim,
// which may block an attempt.
func (i *intake) poison(ctx context.Context, e *messaging.Entry, now time.Time) error {
	i.log.Warn("could not decode a message", "subject", e.Subject, telemetry.LogError, e.Err)
	study, r := "", i.studies.runs[e.ID.Study]
	if r != nil {
		study = e.ID.Study
	}
	kept := i.journal.deadLetters.bury(ctx, i.journal.batch, deadLetter{study, e.Subject, e.Err.Error(), e.Raw})
	switch e.Stream {
	case messaging.StreamResult:
		if e.Worker != "" && kept {
			i.journal.held.Receipt(e.Worker, e.ID, messaging.Poison)
		}
	case messaging.StreamClaim:
		if r == nil || !inPlace(r, e.Subject) || r.indifferent(e.ID) {
			return nil
		}
		if ready, err := i.ready(ctx, r, now); !ready {
			return err
		}
		i.studies.step(r, engine.Spoiled{At: now, Attempt: e.ID})
	}
	return nil
}

// inPlace reports whether a message's subject is one for claims of the study. A
// message in another pool does not block them.
func inPlace(r *run, subject string) bool {
	s, err := messaging.ParseSubject(subject)
	return err == nil && s.Pool == r.pool()
}

func (i *intake) claim(ctx context.Context, c *messaging.Claim, now time.Time) error {
	r := i.studies.runs[c.Study]
	switch {
	case r == nil:
		i.journal.held.Cancel(c.Worker, c.AttemptID, noSuchStudy)
		return nil
	case c.Pool != r.pool():
		i.journal.held.Cancel(c.Worker, c.AttemptID, "the study is of another pool")
		return nil
	case r.indifferent(c.AttemptID):
		i.journal.held.Cancel(c.Worker, c.AttemptID, r.ending())
		return nil
	}
	if ready, err := i.ready(ctx, r, now); !ready { // a broken study answers nothing
		return err
	}
	i.studies.step(r, engine.Claimed{At: now, Claim: c})
	return nil
}

func (i *intake) result(ctx context.Context, e *messaging.Entry, now time.Time) error {
	res := e.Result
	r := i.studies.runs[res.Study]
	if r == nil {
		i.settle(e, "", messaging.Unknown, noSuchStudy)
		return nil
	}
	if r.atRest() { // do not load a large study only to refuse a result
		switch repeated, err := i.repeated(ctx, r, res); {
		case err != nil:
			return err
		case repeated:
			i.journal.held.Receipt(res.Worker, res.AttemptID, messaging.Duplicate)
		default:
			i.settle(e, r.spec.ID, messaging.Late, r.ending())
		}
		return nil
	}
	if ready, err := i.ready(ctx, r, now); !ready {
		// If the study is broken, the sender gets no receipt. It keeps the result and
		// sends it again, as a new message, until a leader can load the study. So the
		// cursor may move past this message.
		return err
	}
	for _, a := range i.studies.step(r, engine.Finished{At: now, Result: res}).DeadLetters {
		i.journal.keep(e, r.spec.ID, a.Reason)
	}
	return nil
}

// measurement passes a report to its engine. If the engine does not have the
// report's curve in memory, measurement reads it from the ledger first. It drops
// reports of a study that cannot be loaded.
func (i *intake) measurement(ctx context.Context, m *messaging.Measurement, now time.Time) error {
	r := i.studies.runs[m.Study]
	if r == nil {
		return nil
	}
	if ready, err := i.ready(ctx, r, now); !ready {
		return err
	}
	if err := i.restore(ctx, r, m.AttemptID, now); err != nil {
		return err
	}
	i.studies.step(r, engine.Measured{At: now, Measurement: m})
	return nil
}

// restore reads the curve of an attempt's trial from the ledger if a report of the
// attempt counts and the engine has forgotten the curve.
func (i *intake) restore(ctx context.Context, r *run, id messaging.AttemptID, now time.Time) error {
	if !r.engine.Forgotten(id) {
		return nil
	}
	stored, err := i.recall(ctx, id)
	if err != nil {
		return err
	}
	i.studies.step(r, engine.Recalled{At: now, Trial: id.Trial, Curve: stored})
	return nil
}

// recall reads a trial's curve from the ledger. It returns nil for a corrupt one,
// which new measurements then replace.
func (i *intake) recall(ctx context.Context, id messaging.AttemptID) (*curve.Curve, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, err := i.curve(ctx, id.Study, id.Trial)
	if errors.Is(err, ledger.ErrCorrupt) {
		i.log.Warn("could not read a trial's stored measurements; new ones replace them", telemetry.LogTrial, id.Trial, telemetry.LogError, err)
		return nil, nil
	}
	return stored, err
}

// ready loads a study's engine if necessary and reports whether it has one. A
// broken study has none; that is not an error.
func (i *intake) ready(ctx context.Context, r *run, now time.Time) (bool, error) {
	switch _, err := i.studies.engineOf(ctx, r, now); {
	case errors.Is(err, ErrBroken):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// repeated reports whether the ledger already holds a result of an ended study. A
// worker sends a result again if it did not get the receipt.
func (i *intake) repeated(ctx context.Context, r *run, res *messaging.Result) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	t, err := i.trial(ctx, res.Study, res.Trial)
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrCorrupt) {
		return false, nil
	}
	return err == nil && engine.Repeated(&r.spec.Definition.Spec, &t, res), err
}

// settle buries a result that no study accepts, and sends its receipt.
func (i *intake) settle(e *messaging.Entry, study string, d messaging.Disposition, reason string) {
	i.journal.keep(e, study, reason)
	i.journal.held.Receipt(e.Result.Worker, e.Result.AttemptID, d)
}
