package membus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

var (
	_ messaging.Worker   = (*Worker)(nil)
	_ messaging.Delivery = (*delivery)(nil)
)

// noTime means to wait only for a change.
var noTime time.Time

// Worker is a worker's bus. It implements messaging.Worker.
type Worker struct {
	*party
	pool string
}

// Worker attaches a worker.
func (b *Broker) Worker(name, pool string) (*Worker, error) {
	if err := messaging.CheckWorker(pool, name); err != nil {
		return nil, err
	}
	return &Worker{party: newParty(b, name), pool: pool}, nil
}

// Fetch implements messaging.Worker.
func (w *Worker) Fetch(ctx context.Context) (messaging.Delivery, error) {
	for {
		if err := w.alive(ctx); err != nil {
			return nil, err
		}
		q, m, changed, next := w.poll()
		if q == nil {
			if err := w.wait(ctx, changed, next); err != nil {
				return nil, err
			}
			continue
		}
		fault := w.b.fault(Event{Op: OpFetch, Actor: w.name, Subject: m.subject})
		if err := w.sleep(ctx, fault.Delay); err != nil {
			return nil, err
		}
		if fault.Lost || fault.Unanswered {
			continue
		}
		d := &delivery{w: w, q: q, m: m}
		var a messaging.Assignment
		if d.err = m.decode(&a); d.err == nil {
			d.assignment = &a
		}
		return d, nil
	}
}

// poll takes an assignment; if there is none, it returns what to wait for.
func (w *Worker) poll() (*queued, message, <-chan struct{}, time.Time) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if !w.b.pools[w.pool] {
		return nil, message{}, w.b.changed, noTime
	}
	q, next := w.b.dequeue(w.pool)
	if q == nil {
		return nil, message{}, w.b.changed, next
	}
	return q, q.message, nil, noTime
}

// Claim implements messaging.Worker.
func (w *Worker) Claim(ctx context.Context, id string, c *messaging.Claim) error {
	m, err := w.message(c.Worker, c)
	if err != nil {
		return err
	}
	if id == "" {
		return errors.New("claim: the id is empty")
	}
	id = m.subject + "/" + w.name + "/" + id
	return w.act(ctx, OpClaim, m.subject, func() error {
		if w.b.remembers(id) {
			return nil
		}
		if w.b.claims().has(m.subject) {
			return fmt.Errorf("%w: %s", messaging.ErrClaimed, m.subject)
		}
		w.b.claims().append(m)
		w.b.claimed[id] = time.Now()
		return nil
	})
}

// message encodes an envelope. It refuses one in another worker's name.
func (w *Worker) message(name string, e messaging.Envelope) (message, error) {
	if name != w.name {
		return message{}, fmt.Errorf("%w: worker %q on the bus of %q", messaging.ErrInvalid, name, w.name)
	}
	return newMessage(e)
}

// publish stores a message of the worker of that name.
func (w *Worker) publish(ctx context.Context, op Op, name string, e messaging.Envelope, store func(message)) error {
	m, err := w.message(name, e)
	if err != nil {
		return err
	}
	return w.act(ctx, op, m.subject, func() error {
		store(m)
		return nil
	})
}

// PublishResult implements messaging.Worker.
func (w *Worker) PublishResult(ctx context.Context, r *messaging.Result) error {
	return w.publish(ctx, OpResult, r.Worker, r, func(m message) { w.b.streams[messaging.StreamResult].replace(m) })
}

// PublishMeasurement implements messaging.Worker.
func (w *Worker) PublishMeasurement(ctx context.Context, v *messaging.Measurement) error {
	return w.publish(ctx, OpMetric, v.Worker, v, func(m message) { w.b.streams[messaging.StreamMetric].append(m) })
}

// Heartbeat implements messaging.Worker.
func (w *Worker) Heartbeat(ctx context.Context, h *messaging.Heartbeat) error {
	return unnoticed(w.publish(ctx, OpHeartbeat, h.Worker, h, func(m message) { deliver(w.b.heartbeats, w.name, m) }))
}

// SendLog implements messaging.Worker.
func (w *Worker) SendLog(ctx context.Context, p *messaging.LogPart) error {
	return unnoticed(w.publish(ctx, OpLog, p.Worker, p, func(m message) { deliver(w.b.logs, w.name, m) }))
}

// Controls implements messaging.Worker.
func (w *Worker) Controls(ctx context.Context) (<-chan messaging.Control, error) {
	return subscribe(ctx, w.party, w.b.controls, w.name)
}

// delivery implements messaging.Delivery.
type delivery struct {
	w          *Worker
	q          *queued
	m          message
	assignment *messaging.Assignment
	err        error
}

func (d *delivery) Assignment() *messaging.Assignment { return d.assignment }
func (d *delivery) Err() error                        { return d.err }

// Ack removes the message even if it has been delivered to another worker since: an ack
// is not ownership.
func (d *delivery) Ack(ctx context.Context) error {
	return d.w.tellBroker(ctx, OpAck, d.m.subject, func() { d.w.b.remove(d.q) })
}

func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	return d.w.tellBroker(ctx, OpNak, d.m.subject, func() {
		d.q.hidden = time.Now().Add(delay)
	})
}

func (d *delivery) Term(ctx context.Context, reason string) error {
	return d.w.act(ctx, OpTerm, d.m.subject, func() error {
		d.w.b.bury(d.w.name, d.m.subject, reason, d.m.data)
		d.w.b.remove(d.q)
		return nil
	})
}
