package membus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// subscribed is the number of messages that wait for a slow reader of a subscription.
const subscribed = 1024

// party is the common part of a leader and a worker: the broker, a name, a lifetime.
type party struct {
	b       *Broker
	name    string
	replica string // of a leader
	cut     bool   // b.mu guards it

	life context.Context // ends, with the cause ErrClosed, when the bus is closed
	end  context.CancelCauseFunc

	mu   sync.Mutex
	stop []func() // ends the subscriptions
}

func newParty(b *Broker, name string) *party {
	p := &party{b: b, name: name}
	p.life, p.end = context.WithCancelCause(context.Background())
	return p
}

// Close ends every call and subscription. It can be repeated.
func (p *party) Close() error {
	p.end(messaging.ErrClosed)
	p.mu.Lock()
	stop := p.stop
	p.stop = nil
	p.mu.Unlock()
	for _, f := range stop {
		f()
	}
	return nil
}

// Cut splits the party from the broker, or ends the split. Its calls wait meanwhile, and
// its subscriptions miss what is sent.
func (p *party) Cut(cut bool) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.cut = cut
	p.b.wake()
}

// alive returns the error that stops a call, if any. It waits while the party is cut off.
func (p *party) alive(ctx context.Context) error {
	for {
		if p.life.Err() != nil {
			return messaging.ErrClosed
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.b.mu.Lock()
		cut, changed := p.cut, p.b.changed
		p.b.mu.Unlock()
		if !cut {
			return nil
		}
		if err := p.wait(ctx, changed, noTime); err != nil {
			return err
		}
	}
}

// act performs an operation with the fault that the broker's owner chose for it. It
// calls f with the broker locked, once for each copy.
func (p *party) act(ctx context.Context, op Op, subject string, f func() error) error {
	if err := p.alive(ctx); err != nil {
		return err
	}
	fault := p.b.fault(Event{Op: op, Actor: p.name, Replica: p.replica, Subject: subject})
	if err := p.sleep(ctx, fault.Delay); err != nil {
		return err
	}
	if err := p.alive(ctx); err != nil {
		return err
	}
	if fault.Lost {
		return ErrLost
	}
	var err error
	p.b.mu.Lock()
	for i := range fault.Copies + 1 {
		if e := f(); i == 0 {
			err = e
		}
	}
	p.b.wake()
	p.b.mu.Unlock()
	if fault.Unanswered {
		return ErrLost
	}
	return err
}

// tellBroker is act for operations without an acknowledgement: a loss goes unnoticed.
func (p *party) tellBroker(ctx context.Context, op Op, subject string, f func()) error {
	err := p.act(ctx, op, subject, func() error {
		f()
		return nil
	})
	return unnoticed(err)
}

// unnoticed returns the error of an operation whose sender does not notice a loss.
func unnoticed(err error) error {
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

func (p *party) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return p.wait(ctx, nil, time.Now().Add(d))
}

// wait waits until the broker has changed or, if it is not zero, until a time.
func (p *party) wait(ctx context.Context, changed <-chan struct{}, until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
		return nil
	case <-due:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.life.Done():
		return messaging.ErrClosed
	}
}

// subscriptions are those of one kind, with the worker whose messages each wants; "" for all.
type subscriptions[T any] map[*subscription[T]]string

// deliver offers a message to those who want a worker's. The caller MUST hold the broker's mu.
func deliver[T any, E interface {
	*T
	messaging.Envelope
}](all subscriptions[T], worker string, m message) {
	for s, of := range all {
		var v T
		if (of == "" || of == worker) && m.decode(E(&v)) == nil {
			s.offer(v)
		}
	}
}

// subscription is a channel that the broker sends on while it is locked.
type subscription[T any] struct {
	of  *party
	out chan T
}

// offer sends v, and drops the oldest message if the channel is full. Nothing reaches a
// party that is cut off. The caller MUST hold the broker's mu, which makes it the channel's
// only sender.
func (s *subscription[T]) offer(v T) {
	if s.of.cut {
		return
	}
	for {
		select {
		case s.out <- v:
			return
		default:
		}
		select {
		case <-s.out:
		default:
		}
	}
}

// subscribe opens a subscription to a worker's messages until ctx ends or the party is
// closed.
func subscribe[T any](ctx context.Context, p *party, all subscriptions[T], worker string) (<-chan T, error) {
	if err := p.alive(ctx); err != nil {
		return nil, err
	}
	s := &subscription[T]{of: p, out: make(chan T, subscribed)}
	p.b.mu.Lock()
	all[s] = worker
	p.b.mu.Unlock()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			p.b.mu.Lock()
			defer p.b.mu.Unlock()
			delete(all, s)
			close(s.out)
		})
	}
	forget := context.AfterFunc(ctx, stop)
	p.mu.Lock()
	p.stop = append(p.stop, func() {
		forget()
		stop()
	})
	p.mu.Unlock()
	if p.life.Err() != nil { // closed in the meantime, perhaps before it knew this subscription
		forget()
		stop()
		return nil, messaging.ErrClosed
	}
	return s.out, nil
}
