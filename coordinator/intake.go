package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// noSuchStudy is what senders of messages about a study that is none are told.
const noSuchStudy = "the study does not exist"

// read feeds a stream's entries to the loop, in their order, until ctx ends.
func (l *leader) read(ctx context.Context, r messaging.Reader) error {
	for {
		entry, err := r.Next(ctx)
		if err != nil {
			return fmt.Errorf("wait for the next entry: %w", err)
		}
		if !l.send(ctx, func(ctx context.Context, now time.Time) error { return l.entry(ctx, &entry, now) }) {
			return nil
		}
	}
}

// entry applies one entry and moves its stream's cursor with it.
func (l *leader) entry(ctx context.Context, e *messaging.Entry, now time.Time) error {
	var err error
	switch {
	case e.Err != nil:
		err = l.poison(ctx, e, now)
	case e.Claim != nil:
		err = l.claim(ctx, e.Claim, now)
	case e.Result != nil:
		err = l.result(ctx, e, now)
	}
	if err != nil {
		return err
	}
	l.batch.PutCursor(e.Stream, e.Cursor)
	return nil
}

// poison archives what nobody can read. A result is receipted, so that its
// sender stops; a claim is taken for spoiled.
func (l *leader) poison(ctx context.Context, e *messaging.Entry, now time.Time) error {
	l.log.Warn("a message cannot be read", "subject", e.Subject, telemetry.LogError, e.Err)
	if err := l.archive(ctx, e.Subject, e.Err.Error(), e.Raw); err != nil {
		return err
	}
	switch e.Stream {
	case messaging.StreamResult:
		if e.Worker != "" {
			l.receipt(ctx, e.Worker, e.ID, engine.Poison)
		}
	case messaging.StreamClaim:
		if r := l.runs[e.ID.Study]; r != nil && r.running() && inPlace(r, e.Subject) {
			l.spoiled(r, e.ID, now)
		}
	}
	return nil
}

// inPlace reports whether a message's subject is where claims of the study are:
// what another pool's workers say is not in their way.
func inPlace(r *run, subject string) bool {
	s, err := messaging.ParseSubject(subject)
	return err == nil && s.Pool == r.spec.Study.Spec.Pool
}

func (l *leader) claim(ctx context.Context, c *messaging.Claim, now time.Time) error {
	r := l.runs[c.Study]
	if r == nil {
		l.cancel(c.Worker, c.AttemptID, noSuchStudy)
		return nil
	}
	if c.Pool != r.spec.Study.Spec.Pool {
		l.cancel(c.Worker, c.AttemptID, "the study is of another pool")
		return nil
	}
	if r.atRest() {
		l.cancel(c.Worker, c.AttemptID, r.ending())
		return nil
	}
	switch _, err := l.engineOf(ctx, r, now); {
	case errors.Is(err, ErrBroken):
		return nil // there is nothing to say of it
	case err != nil:
		return err
	}
	l.step(r, engine.Claimed{At: now, Claim: c})
	l.spoiled(r, c.AttemptID, now)
	return nil
}

// spoiled ends an attempt whose claim's place is taken by a message that is no
// claim of it: one that nobody can read, or with another nonce. Nobody could
// ever claim it, so its trial gets the next attempt, as if the leader had
// withdrawn it.
func (l *leader) spoiled(r *run, id messaging.AttemptID, now time.Time) {
	if r.engine == nil {
		return
	}
	t, ok := r.engine.Trial(id.Trial)
	if !ok || id.Attempt != len(t.Attempts) {
		return
	}
	a := t.Last()
	if a.State != study.AttemptOpen || a.Worker != "" || a.Nonce == id.Nonce {
		return
	}
	l.log.Warn("an attempt cannot be claimed: another message is in its claim's place",
		telemetry.LogStudy, r.name(), telemetry.LogTrial, id.Trial, telemetry.LogAttempt, id.Attempt)
	id.Nonce = a.Nonce
	l.step(r, engine.Claimed{At: now, Claim: &messaging.Claim{AttemptID: id, Worker: messaging.LeaderName, At: now}})
}

func (l *leader) result(ctx context.Context, e *messaging.Entry, now time.Time) error {
	res := e.Result
	r := l.runs[res.Study]
	if r == nil {
		l.settled(ctx, e, engine.Unknown, noSuchStudy)
		return nil
	}
	if r.atRest() { // a large study is not loaded to learn that it takes nothing
		switch told, err := l.told(ctx, res); {
		case err != nil:
			return err
		case told:
			l.receipt(ctx, res.Worker, res.AttemptID, engine.Duplicate)
		default:
			l.settled(ctx, e, engine.Late, r.ending())
		}
		return nil
	}
	switch _, err := l.engineOf(ctx, r, now); {
	case errors.Is(err, ErrBroken):
		// Its sender keeps it, since it gets no receipt, and sends it again until
		// a leader can load the study. That is a new message of the stream: the
		// cursor may pass this one.
		return nil
	case err != nil:
		return err
	}
	for _, a := range l.step(r, engine.Finished{At: now, Result: res}).Archives {
		l.keep(e, a.Reason)
	}
	return nil
}

// told reports whether the ledger has a result already, which is sent again where
// its receipt was lost.
func (l *leader) told(ctx context.Context, res *messaging.Result) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	t, err := l.c.ledger.Trial(ctx, res.Study, res.Trial)
	switch {
	case errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, err
	case res.Attempt > len(t.Attempts):
		return false, nil
	}
	a := &t.Attempts[res.Attempt-1]
	return a.Nonce == res.Nonce && a.Worker == res.Worker && a.Outcome == res.Outcome, nil
}

// settled archives and receipts a result that no study takes.
func (l *leader) settled(ctx context.Context, e *messaging.Entry, d engine.Disposition, reason string) {
	l.keep(e, reason)
	l.receipt(ctx, e.Result.Worker, e.Result.AttemptID, d)
}

// receipt tells a worker what became of a result that no engine has judged.
func (l *leader) receipt(ctx context.Context, worker string, id messaging.AttemptID, d engine.Disposition) {
	l.held.controls = append(l.held.controls, receipt(worker, id, d))
	l.c.metrics.receipted(ctx, d)
}

// keep has an entry archived with the next commit, as it came: encoded again it
// could be longer than what the dead-letter queue takes.
func (l *leader) keep(e *messaging.Entry, reason string) {
	l.held.archives = append(l.held.archives, archived{e.Subject, reason, e.Raw})
}

// cancel tells a worker that an attempt's result is wanted no more.
func (l *leader) cancel(worker string, id messaging.AttemptID, reason string) {
	if worker == messaging.LeaderName {
		return
	}
	l.held.controls = append(l.held.controls, messaging.Control{Kind: messaging.ControlCancel, Worker: worker, AttemptID: id, Reason: reason})
}

// hear feeds the workers' heartbeats to the loop.
func (l *leader) hear(ctx context.Context, beats <-chan messaging.Heartbeat) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case h, ok := <-beats:
			if !ok {
				return errors.New("the subscription has ended")
			}
			if !l.send(ctx, func(_ context.Context, now time.Time) error { l.heartbeat(h, now); return nil }) {
				return nil
			}
		}
	}
}

// heartbeat renews a worker's leases and ends what it runs in vain.
func (l *leader) heartbeat(h messaging.Heartbeat, now time.Time) {
	news := l.fleet.beat(h, now)
	if news.shared {
		l.log.Warn("two workers have the same name: give each a name, or a state directory, of its own", telemetry.LogWorker, h.Worker)
	}
	if news.fresh { // a new process remembers nothing that the last one was told
		for _, r := range l.ordered() {
			if reason, ok := r.avoided[h.Worker]; ok && r.running() {
				l.held.controls = append(l.held.controls, avoid(h.Worker, r.spec.ID, reason))
			}
		}
	}
	for _, id := range h.Running {
		switch r := l.runs[id.Study]; {
		case r == nil:
			l.cancel(h.Worker, id, noSuchStudy)
		case r.engine != nil:
			l.step(r, engine.Alive{At: now, Worker: h.Worker, Attempt: id})
		case r.broken == nil:
			l.cancel(h.Worker, id, r.ending())
		}
	}
}

// healthEvery is how often a leader asks whether the broker answers.
const healthEvery = time.Second

// attend asks the broker whether it answers. While it does not, no worker can be
// heard, so none is given up; a leader who cannot reach it for two of its leases
// steps down: another replica may.
func (l *leader) attend(ctx context.Context) error {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	var since time.Time // of the outage; zero for none
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		call, cancel := context.WithTimeout(ctx, l.c.o.LeaseTTL)
		asked := time.Now()
		err := l.c.o.Bus.Healthy(call)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && since.IsZero():
			continue
		case err == nil:
			l.log.Info("the broker answers again", "after", time.Since(since))
			since = time.Time{}
		case since.IsZero():
			l.log.Warn("the broker does not answer", telemetry.LogError, err)
			since = asked
		case time.Since(since) > 2*l.c.o.LeaseTTL:
			return fmt.Errorf("no answer for %v: %w", time.Since(since).Round(time.Second), err)
		}
		l.send(ctx, func(_ context.Context, now time.Time) error { l.fleet.listenSince(now); return nil })
	}
}
