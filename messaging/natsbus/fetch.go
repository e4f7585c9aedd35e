package natsbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// fetchExpiry is how long the server holds one request for an assignment. While
// it holds a request of 10 s or more, it says every 5 s that it is still there.
const fetchExpiry = 30 * time.Second

var errDisconnected = errors.New("not connected")

// Fetch implements messaging.Worker. It asks for one assignment at a time, so
// that none waits in a worker that cannot run it. Where the pool has no consumer
// (yet, or any more), or the broker is gone, it goes on trying.
func (w *Worker) Fetch(ctx context.Context) (messaging.Delivery, error) {
	ctx, cancel := w.during(ctx)
	defer cancel()
	pause := newBackoff()
	for {
		d, err := w.fetch(ctx)
		if d != nil {
			return d, nil
		}
		if ctx.Err() != nil {
			return nil, w.explain(context.Cause(ctx))
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return nil, w.explain(err)
		}
		if err == nil {
			pause = newBackoff()
			continue
		}
		w.log.Debug("fetching again", "pool", w.opts.Pool, "error", err)
		w.unbind()
		if !pause.wait(ctx) {
			return nil, w.explain(context.Cause(ctx))
		}
	}
}

// fetch waits for one assignment; none, and no error, where none came in time.
func (w *Worker) fetch(ctx context.Context) (*delivery, error) {
	// The client library leaks a subscription for each request that it cannot
	// send, so do not try without a connection.
	if !w.nc.IsConnected() {
		if w.nc.IsClosed() {
			return nil, nats.ErrConnectionClosed
		}
		return nil, errDisconnected
	}
	consumer, err := w.bind(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchExpiry)
	defer cancel()
	batch, err := consumer.Fetch(1, jetstream.FetchContext(ctx))
	if err != nil {
		return nil, err
	}
	m, ok := <-batch.Messages()
	if !ok {
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, batch.Error()
	}
	return w.delivery(m), nil
}

// bind finds the pool's consumer, once.
func (w *Worker) bind(ctx context.Context) (jetstream.Consumer, error) {
	w.bound.Lock()
	consumer := w.consumer
	w.bound.Unlock()
	if consumer != nil {
		return consumer, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	consumer, err := w.js.Consumer(ctx, streamAssign, consumerName(w.shard, w.opts.Pool))
	if err != nil {
		return nil, fmt.Errorf("consumer of pool %s: %w", w.opts.Pool, err)
	}
	w.bound.Lock()
	w.consumer = consumer
	w.bound.Unlock()
	return consumer, nil
}

func (w *Worker) unbind() {
	w.bound.Lock()
	w.consumer = nil
	w.bound.Unlock()
}

// delivery is a fetched message. It implements messaging.Delivery.
type delivery struct {
	w          *Worker
	m          jetstream.Msg
	assignment *messaging.Assignment
	err        error
}

func (w *Worker) delivery(m jetstream.Msg) *delivery {
	d := &delivery{w: w, m: m}
	var a messaging.Assignment
	if d.err = decode(m.Subject(), m.Headers(), m.Data(), &a); d.err == nil {
		d.assignment = &a
	}
	return d
}

// Assignment implements messaging.Delivery.
func (d *delivery) Assignment() *messaging.Assignment { return d.assignment }

// Err implements messaging.Delivery.
func (d *delivery) Err() error { return d.err }

// Ack implements messaging.Delivery. It waits until the server has it.
func (d *delivery) Ack(ctx context.Context) error {
	ctx, cancel := d.w.request(ctx)
	defer cancel()
	return d.answered("ack", d.m.DoubleAck(ctx))
}

// Nak implements messaging.Delivery.
func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if delay <= 0 {
		return d.answered("nak", d.m.Nak())
	}
	return d.answered("nak", d.m.NakWithDelay(delay))
}

// Term implements messaging.Delivery. The dead letter is stored first: a message
// is never lost between the two.
func (d *delivery) Term(ctx context.Context, reason string) error {
	if err := d.w.bury(ctx, d.w.opts.Name, d.m.Subject(), reason, d.m.Data()); err != nil {
		return err
	}
	return d.answered("term", d.m.TermWithReason(oneLine(reason)))
}

func (d *delivery) answered(what string, err error) error {
	if err == nil || errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return nil
	}
	return d.w.explain(fmt.Errorf("%s %s: %w", what, d.m.Subject(), err))
}
