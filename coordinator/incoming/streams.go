// Package incoming reads what workers publish, passes it to the engines of their studies, and deletes
// from the broker what nobody needs any more.
//
// A message moves its stream's cursor, and the cursor is committed together with what the message
// has changed: a message is applied once, however often the leader dies. So whatever is to be kept of
// a message MUST be in the commit group BEFORE the cursor moves past it. Only what can be repeated
// or is worth nothing may be left out: a worker publishes a result without a receipt again.
//
// Messages come from workers, which may be old, wrong or hostile. None of them may end the term: every
// later leader would read the same message and end as well. An error here is one of etcd, of the
// broker or of the context.
package incoming

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/deadletter"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// noSuchStudy is the reason sent to workers whose message names an unknown study.
const noSuchStudy = "the study does not exist"

// drainWait is how long a drain waits for an entry before it checks again whether
// the stream still has one: a newer result replaces an older one, which never comes then.
const drainWait = 2 * time.Second

// callTimeout bounds one call to the broker or the ledger.
const callTimeout = 10 * time.Second

// Bus is the part of the bus that Streams needs.
type Bus interface {
	Read(ctx context.Context, s messaging.Stream, from messaging.Cursor) (messaging.Reader, error)
	Last(ctx context.Context, s messaging.Stream) (uint64, error)
}

// Ledger is what Streams reads of single trials.
type Ledger interface {
	Trial(ctx context.Context, study string, number int) (record.Trial, error)
	Curve(ctx context.Context, study string, trial int) (*curve.Curve, error)
}

// Streams reads claims, results and measurements and passes them to their studies' engines. The
// loop owns it, except for what Followers returns. During a takeover there is no loop yet, and Drain
// applies entries itself.
type Streams struct {
	log     *slog.Logger
	bus     Bus
	ledger  Ledger
	studies *studies.Studies
	group   *commit.Group
	readers []messaging.Reader
}

// NewStreams returns the streams of a term; Drain and Open open them.
func NewStreams(log *slog.Logger, bus Bus, l Ledger, s *studies.Studies, g *commit.Group) *Streams {
	return &Streams{log: log, bus: bus, ledger: l, studies: s, group: g}
}

// Drain applies a stream's messages from its cursor to the last one that it holds
// now. The reader continues from there. Sequence numbers are only comparable within
// one stream, so Drain uses the reader's own cursor: if the stream was recreated,
// that is before its first message.
//
// A takeover MUST drain claims and results BEFORE time passes for the studies. Otherwise an attempt
// could count as lost, or be handed out again, although the stream says who has it or how it has ended.
// A long backlog is committed in parts, since a batch must not grow without bounds.
func (i *Streams) Drain(ctx context.Context, s messaging.Stream, from messaging.Cursor, commit func(context.Context) error) error {
	r, err := i.Open(ctx, s, from)
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
			if i.group.Full() {
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

// Open makes a reader that continues from a stream's cursor. It MUST be called BEFORE Followers, which
// knows only the readers that there are by then.
func (i *Streams) Open(ctx context.Context, s messaging.Stream, from messaging.Cursor) (messaging.Reader, error) {
	r, err := i.bus.Read(ctx, s, from)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", s, err)
	}
	i.readers = append(i.readers, r)
	return r, nil
}

func (i *Streams) last(ctx context.Context, s messaging.Stream) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	last, err := i.bus.Last(ctx, s)
	if err != nil {
		return 0, fmt.Errorf("find the end of stream %s: %w", s, err)
	}
	return last, nil
}

// Followers returns a function for each open stream. It posts the stream's entries to the loop, in
// order, until ctx ends. If reading fails, so does the function, and with it the term: the next leader
// reads on from the committed cursor.
func (i *Streams) Followers(post inbox.Post) (followers []func(context.Context) error) {
	for _, r := range i.readers {
		followers = append(followers, func(ctx context.Context) error {
			for {
				entry, err := r.Next(ctx)
				if err != nil {
					return fmt.Errorf("wait for the next entry: %w", err)
				}
				if !post(ctx, func(ctx context.Context, now time.Time) error { return i.entry(ctx, &entry, now) }) {
					return nil
				}
			}
		})
	}
	return followers
}

// Close closes the readers. Their followers MUST have ended BEFORE.
func (i *Streams) Close() {
	for _, r := range i.readers {
		if err := r.Close(); err != nil {
			i.log.Debug("could not close a reader", telemetry.LogError, err)
		}
	}
}

// entry applies one entry and moves its stream's cursor with it. After an error the cursor stays, and the
// term ends: the entry is applied again by the next leader.
func (i *Streams) entry(ctx context.Context, e *messaging.Entry, now time.Time) error {
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
	i.group.MoveCursor(e.Stream, e.Cursor)
	return nil
}

// poison buries a message that cannot be decoded. If it could bury a result, it
// sends a receipt, so that the worker stops sending it. It tells the engine about a claim,
// which may block an attempt.
func (i *Streams) poison(ctx context.Context, e *messaging.Entry, now time.Time) error {
	i.log.Warn("could not decode a message", "subject", e.Subject, telemetry.LogError, e.Err)
	study, r := "", i.studies.Get(e.ID.Study)
	if r != nil {
		study = e.ID.Study
	}
	kept := i.group.BuryNow(ctx, deadletter.Letter{Study: study, Subject: e.Subject, Reason: e.Err.Error(), Raw: e.Raw})
	switch e.Stream {
	case messaging.StreamResult:
		if e.Worker != "" && kept {
			i.group.Messages().Receipt(e.Worker, e.ID, messaging.Poison)
		}
	case messaging.StreamClaim:
		if r == nil || !inPlace(r, e.Subject) || r.Indifferent(e.ID) {
			return nil
		}
		if ready, err := i.ready(ctx, r, now); !ready {
			return err
		}
		i.studies.Step(r, engine.Spoiled{At: now, Attempt: e.ID})
	}
	return nil
}

// inPlace reports whether a message's subject is one for claims of the study. A
// message in another pool does not block them.
func inPlace(r *studies.Study, subject string) bool {
	s, err := messaging.ParseSubject(subject)
	return err == nil && s.Pool == r.Pool()
}

// claim passes a claim to its engine, which decides whether the worker may run the attempt. A worker whose claim
// can change nothing is told to stop; it would otherwise find out only when its result is refused.
func (i *Streams) claim(ctx context.Context, c *messaging.Claim, now time.Time) error {
	r := i.studies.Get(c.Study)
	switch {
	case r == nil:
		i.group.Messages().Cancel(c.Worker, c.AttemptID, noSuchStudy)
		return nil
	case c.Pool != r.Pool():
		i.group.Messages().Cancel(c.Worker, c.AttemptID, "the study is of another pool")
		return nil
	case r.Indifferent(c.AttemptID):
		i.group.Messages().Cancel(c.Worker, c.AttemptID, r.Ending())
		return nil
	}
	if ready, err := i.ready(ctx, r, now); !ready { // a broken study answers nothing
		return err
	}
	i.studies.Step(r, engine.Claimed{At: now, Claim: c})
	return nil
}

// result passes a result to its engine. Each result gets a receipt in the end, since its worker keeps it and
// sends it again until then: the engine's Output has one, and a result that no engine sees gets it here. The
// exceptions are a result of a broken study, and one that could not be buried (see commit.Group.Commit).
func (i *Streams) result(ctx context.Context, e *messaging.Entry, now time.Time) error {
	res := e.Result
	r := i.studies.Get(res.Study)
	if r == nil {
		i.refuse(e, "", messaging.Unknown, noSuchStudy)
		return nil
	}
	if r.AtRest() { // do not load a large study only to refuse a result
		switch repeated, err := i.repeated(ctx, r, res); {
		case err != nil:
			return err
		case repeated:
			i.group.Messages().Receipt(res.Worker, res.AttemptID, messaging.Duplicate)
		default:
			i.refuse(e, r.Spec.ID, messaging.Late, r.Ending())
		}
		return nil
	}
	if ready, err := i.ready(ctx, r, now); !ready {
		// If the study is broken, the sender gets no receipt. It keeps the result and
		// sends it again, as a new message, until a leader can load the study. So the
		// cursor may move past this message.
		return err
	}
	for _, a := range i.studies.Step(r, engine.Finished{At: now, Result: res}).DeadLetters {
		i.group.Bury(e, r.Spec.ID, a.Reason)
	}
	return nil
}

// measurement passes a report to its engine. If the engine does not have the
// report's curve in memory, measurement reads it from the ledger first. It drops
// reports of a study that cannot be loaded: unlike a result, a report is worth nothing without
// the study that compares it.
func (i *Streams) measurement(ctx context.Context, m *messaging.Measurement, now time.Time) error {
	r := i.studies.Get(m.Study)
	if r == nil {
		return nil
	}
	if ready, err := i.ready(ctx, r, now); !ready {
		return err
	}
	if err := i.Restore(ctx, r, m.AttemptID, now); err != nil {
		return err
	}
	i.studies.Step(r, engine.Measured{At: now, Measurement: m})
	return nil
}

// Restore reads the curve of an attempt's trial from the ledger if a report of the
// attempt counts and the engine has forgotten the curve. It MUST be called BEFORE the engine is told
// of the report: see engine.Forgotten.
func (i *Streams) Restore(ctx context.Context, r *studies.Study, id messaging.AttemptID, now time.Time) error {
	if !r.Engine.Forgotten(id) {
		return nil
	}
	stored, err := i.recall(ctx, id)
	if err != nil {
		return err
	}
	i.studies.Step(r, engine.Recalled{At: now, Trial: id.Trial, Curve: stored})
	return nil
}

// recall reads a trial's curve from the ledger. It returns nil for a corrupt one,
// which new measurements then replace.
func (i *Streams) recall(ctx context.Context, id messaging.AttemptID) (*curve.Curve, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, err := i.ledger.Curve(ctx, id.Study, id.Trial)
	if errors.Is(err, ledger.ErrCorrupt) {
		i.log.Warn("could not read a trial's stored measurements; new ones replace them", telemetry.LogTrial, id.Trial, telemetry.LogError, err)
		return nil, nil
	}
	return stored, err
}

// ready loads a study's engine if necessary and reports whether it has one. A
// broken study has none; that is not an error.
func (i *Streams) ready(ctx context.Context, r *studies.Study, now time.Time) (bool, error) {
	switch _, err := i.studies.EngineOf(ctx, r, now); {
	case errors.Is(err, studies.ErrBroken):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// repeated reports whether the ledger already holds a result of an ended study. A
// worker sends a result again if it did not get the receipt. Such a result is not buried: people
// would take it for one that was lost.
func (i *Streams) repeated(ctx context.Context, r *studies.Study, res *messaging.Result) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	t, err := i.ledger.Trial(ctx, res.Study, res.Trial)
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrCorrupt) {
		return false, nil
	}
	return err == nil && engine.Repeated(&r.Spec.Definition.Spec, &t, res), err
}

// refuse buries a result that no study accepts, and sends its receipt. Both wait for the next commit; if it
// cannot be buried then, the receipt is withheld.
func (i *Streams) refuse(e *messaging.Entry, study string, d messaging.Disposition, reason string) {
	i.group.Bury(e, study, reason)
	i.group.Messages().Receipt(e.Result.Worker, e.Result.AttemptID, d)
}
