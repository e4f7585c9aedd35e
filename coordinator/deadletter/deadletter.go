// Package deadletter buries messages that change nothing in the dead-letter queue, where people
// can inspect them.
package deadletter

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/metrics"
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
	// RetryEvery is how often the dead-letter queue is offered what was set aside.
	RetryEvery = 10 * time.Second
	// atOnce is how many messages it is offered at a time.
	atOnce = 64
	// callTimeout bounds one call to the ledger.
	callTimeout = 10 * time.Second
)

// Queue buries messages. If the dead-letter queue of the bus refuses one, it sets that and all
// later ones aside in the ledger, until the queue takes them. The leader's loop owns it, except for
// Retry.
type Queue struct {
	log     *slog.Logger
	metrics *metrics.Metrics
	put     func(ctx context.Context, subject, reason string, raw []byte) error // messaging.Leader.Bury
	read    func(ctx context.Context, limit int) ([]ledger.Aside, error)        // reads the ledger

	refused  error // why the queue refused the last message; nil while it takes them
	n, bytes int   // what is set aside
}

// New returns a queue that buries messages with put, which is messaging.Leader.Bury, and finds
// what was set aside with read.
func New(log *slog.Logger, m *metrics.Metrics, put func(ctx context.Context, subject, reason string, raw []byte) error,
	read func(ctx context.Context, limit int) ([]ledger.Aside, error)) *Queue {
	return &Queue{log: log, metrics: m, put: put, read: read}
}

// Letter is a message for the dead-letter queue, as it was received, and the study that
// it names.
type Letter struct {
	Study, Subject, Reason string
	Raw                    []byte
}

// Resume continues with what earlier leaders have set aside.
func (d *Queue) Resume(n, bytes int) {
	d.n, d.bytes = n, bytes
	d.metrics.SetAside(n)
	if n > 0 {
		d.refused = errors.New("messages of an earlier leader still wait for it")
	}
}

// Bury puts a message into the dead-letter queue or, if the queue refuses it, into the
// batch. It MUST be called BEFORE the cursor moves past the message: then a crash
// buries it twice rather than never. It returns false if there is no space for the
// message: then the worker must not get a receipt, so that it keeps a result. No message
// ends the term, since the queue would refuse it of every other leader too.
func (d *Queue) Bury(ctx context.Context, batch *ledger.Batch, l Letter) (kept bool) {
	if d.refused == nil {
		if d.refused = d.offer(ctx, l.Subject, l.Reason, l.Raw); d.refused == nil {
			return true
		}
		d.log.Error("the dead-letter queue refuses messages: setting them aside until it takes them", telemetry.LogError, d.refused)
	}
	d.metrics.Refused(ctx)
	aside := &record.Aside{Study: l.Study, Subject: l.Subject, Reason: l.Reason, Refused: d.refused.Error(), At: time.Now(), Raw: l.Raw}
	size := sizeOf(aside)
	if d.n >= maxAside || d.bytes+size > maxAsideBytes || len(l.Raw) > ledger.MaxBytes/2 {
		d.log.Error("no space to set a message aside", "subject", l.Subject, telemetry.LogReason, l.Reason, "bytes", len(l.Raw))
		return false
	}
	d.log.Warn("set a message aside", "subject", l.Subject, telemetry.LogReason, l.Reason, "bytes", len(l.Raw))
	batch.PutAside(record.NewID(rand.Reader, aside.At), aside)
	d.n, d.bytes = d.n+1, d.bytes+size
	d.metrics.SetAside(d.n)
	return true
}

// offer offers a message to the dead-letter queue, or its beginning if it is too large.
func (d *Queue) offer(ctx context.Context, subject, reason string, raw []byte) error {
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

// Retry offers the dead-letter queue what was set aside, from time to time until ctx ends. forget runs in
// the loop and deletes from the ledger what the queue has taken.
func (d *Queue) Retry(ctx context.Context, every time.Duration, post inbox.Post, forget func(key string)) error {
	for range backoff.Ticks(ctx, every) {
		if d.metrics.Aside() > 0 {
			d.offerAsides(ctx, post, forget)
		}
	}
	return nil
}

// offerAsides offers some of what was set aside, until the queue refuses a message.
func (d *Queue) offerAsides(ctx context.Context, post inbox.Post, forget func(key string)) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	waiting, err := d.read(call, atOnce)
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
		d.metrics.SetAside(d.n)
	})
}

// sizeOf returns about how many bytes a message takes in the ledger.
func sizeOf(a *record.Aside) int { return len(a.Raw)*4/3 + len(a.Reason) + len(a.Subject) }
