package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// buryTimeout bounds one call to the dead-letter queue, since the loop waits
	// for it.
	buryTimeout = 3 * time.Second
	// maxCut is how many bytes are kept of a message that is too large for the
	// dead-letter queue.
	maxCut = 4 << 10
	// maxAside and maxAsideBytes bound what is set aside in the ledger.
	maxAside, maxAsideBytes = 1000, 16 << 20
	// buryEvery is how often the dead-letter queue is offered what was set aside, and
	// buryAtOnce how many messages at a time.
	buryEvery, buryAtOnce = 10 * time.Second, 64
)

// deadLetters buries messages that change nothing, so that people can inspect them. If
// the dead-letter queue refuses one, it sets that and all later ones aside in the ledger,
// until the queue takes them. The loop owns it, except for offer and retry.
type deadLetters struct {
	log     *slog.Logger
	metrics *metrics
	put     func(ctx context.Context, subject, reason string, raw []byte) error // messaging.Leader.Bury
	read    func(ctx context.Context, limit int) ([]ledger.Aside, error)        // reads the ledger
	every   time.Duration                                                       // between retries

	refused  error // why the queue refused the last message; nil while it takes them
	n, bytes int   // what is set aside
}

// deadLetter is a message for the dead-letter queue, as it was received, and the study that
// it names.
type deadLetter struct {
	study, subject, reason string
	raw                    []byte
}

// resume continues with what earlier leaders have set aside.
func (d *deadLetters) resume(n, bytes int) {
	d.n, d.bytes = n, bytes
	d.metrics.aside.Store(int64(n))
	if n > 0 {
		d.refused = errors.New("messages of an earlier leader still wait for it")
	}
}

// bury puts a message into the dead-letter queue or, if the queue refuses it, into the
// batch. It MUST be called BEFORE the cursor moves past the message: then a crash
// buries it twice rather than never. It returns false if there is no room for the
// message: then the worker must not get a receipt, so that it keeps a result. No message
// ends the term, since the queue would refuse it of every other leader too.
func (d *deadLetters) bury(ctx context.Context, batch *ledger.Batch, l deadLetter) (kept bool) {
	if d.refused == nil {
		if d.refused = d.offer(ctx, l.subject, l.reason, l.raw); d.refused == nil {
			return true
		}
		d.log.Error("the dead-letter queue refuses messages: setting them aside until it takes them", telemetry.LogError, d.refused)
	}
	d.metrics.buryRefused.Add(ctx, 1)
	aside := &record.Aside{Study: l.study, Subject: l.subject, Reason: l.reason, Refused: d.refused.Error(), At: time.Now(), Raw: l.raw}
	size := sizeOf(aside)
	if d.n >= maxAside || d.bytes+size > maxAsideBytes || len(l.raw) > ledger.MaxBytes/2 {
		d.log.Error("no room to set a message aside", "subject", l.subject, telemetry.LogReason, l.reason, "bytes", len(l.raw))
		return false
	}
	d.log.Warn("set a message aside", "subject", l.subject, telemetry.LogReason, l.reason, "bytes", len(l.raw))
	batch.PutAside(record.NewID(rand.Reader, aside.At), aside)
	d.n, d.bytes = d.n+1, d.bytes+size
	d.metrics.aside.Store(int64(d.n))
	return true
}

// offer offers a message to the dead-letter queue, or its beginning if it is too large.
func (d *deadLetters) offer(ctx context.Context, subject, reason string, raw []byte) error {
	try := func(reason string, raw []byte) error {
		ctx, cancel := context.WithTimeout(ctx, buryTimeout)
		defer cancel()
		return d.put(ctx, subject, reason, raw)
	}
	err := try(reason, raw)
	if errors.Is(err, messaging.ErrTooLarge) {
		err = try("cut short: "+reason, raw[:min(len(raw), maxCut)])
	}
	return err
}

// retry offers the dead-letter queue what was set aside, until ctx ends. forget runs in
// the loop and deletes from the ledger what the queue has taken.
func (d *deadLetters) retry(ctx context.Context, post inbox.Post, forget func(key string)) error {
	for range backoff.Ticks(ctx, d.every) {
		if d.metrics.aside.Load() > 0 {
			d.offerAsides(ctx, post, forget)
		}
	}
	return nil
}

// offerAsides offers some of what was set aside, until the queue refuses a message.
func (d *deadLetters) offerAsides(ctx context.Context, post inbox.Post, forget func(key string)) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	waiting, err := d.read(call, buryAtOnce)
	cancel()
	if err != nil {
		d.log.Debug("could not read what was set aside", telemetry.LogError, err)
		return
	}
	taken := waiting
	for i, a := range waiting {
		if err = d.offer(ctx, a.Subject, a.Reason, a.Raw); err != nil {
			taken = waiting[:i]
			break
		}
	}
	// The next offer would read again what is not forgotten yet.
	post.Wait(ctx, func(time.Time) {
		for i := range taken {
			forget(taken[i].Key)
			d.n, d.bytes = max(0, d.n-1), max(0, d.bytes-sizeOf(&taken[i].Aside))
		}
		d.refused = err
		d.metrics.aside.Store(int64(d.n))
	})
}

// sizeOf returns about how many bytes a message takes in the ledger.
func sizeOf(a *record.Aside) int { return len(a.Raw)*4/3 + len(a.Reason) + len(a.Subject) }
