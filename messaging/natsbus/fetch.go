package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// fetchExpiry is the time for which the server holds a request for an assignment. For
// requests of more than 10 s, the server sends a heartbeat every 5 s.
const fetchExpiry = 30 * time.Second

var (
	errDisconnected = errors.New("not connected")
	errSilent       = errors.New("the server has been silent for too long")
	errReconnected  = errors.New("connected again")
)

// Fetch implements messaging.Worker. It requests one assignment at a time, so that none
// waits in a worker that cannot run it. It keeps trying if the pool's consumer does not
// exist or the broker is unreachable.
func (w *Worker) Fetch(ctx context.Context) (messaging.Delivery, error) {
	ctx, cancel := w.during(ctx)
	defer cancel()
	pause := backoff.New(messaging.RetryFirst, messaging.RetryMost)
	for {
		// A request that nobody waits for would take an assignment away from the other
		// workers until its acknowledgement is overdue.
		if ctx.Err() != nil {
			return nil, w.explain(context.Cause(ctx))
		}
		d, err := w.fetch(ctx)
		if d != nil {
			return d, nil
		}
		if errors.Is(err, nats.ErrConnectionClosed) && ctx.Err() == nil {
			return nil, w.explain(err)
		}
		if err == nil {
			pause.Reset()
			continue
		}
		w.log.Debug("fetching again", "pool", w.opts.Pool, "error", err)
		if !pause.Wait(ctx) {
			return nil, w.explain(context.Cause(ctx))
		}
	}
}

// fetch waits for one assignment; none, and no error, where none came in time.
//
// It speaks the protocol of a pull itself (NATS ADR-13): the client library asks
// for the consumer's state first, which a server answers twice where a worker's
// account imports the question, once with "not enabled for account".
func (w *Worker) fetch(whole context.Context) (*delivery, error) {
	if !w.nc.IsConnected() {
		if w.nc.IsClosed() {
			return nil, nats.ErrConnectionClosed
		}
		return nil, errDisconnected
	}
	expiry, cancel := context.WithTimeout(whole, fetchExpiry)
	defer cancel()
	ctx, release := w.untilReconnected(expiry)
	defer release()
	sub, err := w.nc.SubscribeSync(w.nc.NewInbox())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := ignoreClosed(sub.Unsubscribe()); err != nil {
			w.log.Warn("cannot unsubscribe", "subject", sub.Subject, "error", err)
		}
	}()
	request, silence, err := pull(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+streamAssign+"."+consumerName(w.shard, w.opts.Pool), sub.Subject,
		request); err != nil {
		return nil, err
	}
	for {
		m, err := next(ctx, sub, silence)
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errReconnected):
			return w.leftOver(whole, sub), nil
		case ctx.Err() != nil && err != nil:
			return nil, nil
		case err != nil:
			return nil, err
		}
		switch status, reason := statusOf(m); status {
		case "":
			return w.delivery(m), nil
		case statusHeartbeat:
		case statusNone, statusExpired:
			return nil, nil
		case statusNoResponders:
			return nil, fmt.Errorf("the pool has no consumer: %w", nats.ErrNoResponders)
		default:
			return nil, fmt.Errorf("status %s: %s", status, reason)
		}
	}
}

// untilReconnected derives a context that also ends, with the cause errReconnected, when the
// connection was lost and made again. The server that is connected now may not hold the
// requests of before, and says nothing of them.
func (w *Worker) untilReconnected(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	connected, watched := w.nc.StatusChanged(nats.CONNECTED), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-connected:
			cancel(errReconnected)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-watched
		w.nc.RemoveStatusListener(connected)
	}
}

// leftOver returns the assignment that the server sent as soon as it was connected again, to
// a request that it still held; nil if there is none. Otherwise it would be hidden from all
// workers until its acknowledgement is overdue.
func (w *Worker) leftOver(ctx context.Context, sub *nats.Subscription) *delivery {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := w.nc.FlushWithContext(ctx); err != nil { // what comes before its answer is here then
		w.log.Debug("no answer after a reconnection", "error", err)
	}
	for {
		m, err := sub.NextMsg(time.Millisecond)
		if err != nil {
			return nil
		}
		if status, _ := statusOf(m); status == "" {
			return w.delivery(m)
		}
	}
}

// The statuses with which a server answers a pull request.
const (
	statusHeartbeat    = "100"
	statusNone         = "404"
	statusExpired      = "408"
	statusNoResponders = "503"
)

// statusOf returns a message's status and its reason; the status of an assignment is
// empty.
func statusOf(m *nats.Msg) (status, reason string) {
	if len(m.Data) > 0 {
		return "", ""
	}
	return m.Header.Get("Status"), m.Header.Get("Description")
}

// pull returns a request for one message that expires a moment before ctx ends, so that
// none is sent to a worker that no longer waits. silence is the longest time between
// the server's heartbeats while it holds the request, or 0 if it sends none.
func pull(ctx context.Context) (request []byte, silence time.Duration, err error) {
	const beat = 5 * time.Second
	r := struct {
		Batch     int           `json:"batch"`
		Expires   time.Duration `json:"expires"` // ns
		Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
	}{Batch: 1, Expires: fetchExpiry}
	if deadline, ok := ctx.Deadline(); ok {
		left := min(time.Until(deadline), fetchExpiry)
		r.Expires = max(left-min(left/10, time.Second), time.Millisecond)
	}
	if r.Expires > 2*beat {
		r.Heartbeat, silence = beat, 2*beat
	}
	request, err = json.Marshal(r)
	return request, silence, err
}

// next waits for a message of the server, and fails if the server is silent for too
// long.
func next(ctx context.Context, sub *nats.Subscription, silence time.Duration) (*nats.Msg, error) {
	if silence == 0 {
		return sub.NextMsgWithContext(ctx)
	}
	wait, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	m, err := sub.NextMsgWithContext(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return nil, errSilent
	}
	return m, err
}

// delivery is a fetched message. It implements messaging.Delivery.
type delivery struct {
	w          *Worker
	m          *nats.Msg
	assignment *messaging.Assignment
	err        error
	answered   atomic.Bool // an answer was or will be sent
}

func (w *Worker) delivery(m *nats.Msg) *delivery {
	d := &delivery{w: w, m: m}
	var a messaging.Assignment
	if d.err = decode(m.Subject, m.Header, m.Data, &a); d.err == nil {
		d.assignment = &a
	}
	return d
}

// Assignment implements messaging.Delivery.
func (d *delivery) Assignment() *messaging.Assignment { return d.assignment }

// Err implements messaging.Delivery.
func (d *delivery) Err() error { return d.err }

// The answers to a delivery (NATS documentation, "JetStream consumers").
const (
	answerAck  = "+ACK"
	answerNak  = "-NAK"
	answerTerm = "+TERM"
)

// Ack implements messaging.Delivery.
func (d *delivery) Ack(ctx context.Context) error { return d.answer(ctx, answerAck) }

// Nak implements messaging.Delivery.
func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		return d.answer(ctx, answerNak)
	}
	return d.answer(ctx, fmt.Sprintf("%s {\"delay\": %d}", answerNak, delay.Nanoseconds()))
}

// Term implements messaging.Delivery. It stores the dead letter first, so that the
// message is never lost in between.
func (d *delivery) Term(ctx context.Context, reason string) error {
	if err := d.w.bury(ctx, d.w.opts.Name, d.m.Subject, reason, d.m.Data); err != nil {
		return err
	}
	return d.answer(ctx, answerTerm+" "+oneLine(reason))
}

// answer sends an unconfirmed answer, unless one was sent before.
func (d *delivery) answer(ctx context.Context, text string) error {
	if d.answered.Load() {
		return nil
	}
	if err := d.w.send(ctx, &nats.Msg{Subject: d.m.Reply, Data: []byte(text)}); err != nil {
		return err
	}
	d.answered.Store(true)
	return nil
}
