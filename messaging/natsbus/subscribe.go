package natsbus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// subscribed is the number of messages that wait for a slow reader of a subscription.
const subscribed = 1024

// subscribe delivers the messages of a subject over core NATS, decoded, until ctx ends
// or the bus is closed; then it closes the channel. A slow reader loses the oldest
// messages. Messages that cannot be decoded are logged and dropped.
func subscribe[T any](ctx context.Context, c *client, subject string, read func(*nats.Msg) (T, error)) (<-chan T, error) {
	in := make(chan *nats.Msg, subscribed)
	sub, err := c.nc.ChanSubscribe(subject, in)
	if err != nil {
		return nil, c.explain(fmt.Errorf("subscribe %s: %w", subject, err))
	}
	// The server must know the subscription before the caller acts on it.
	if err := c.flush(ctx); err != nil {
		return nil, errors.Join(err, ignoreClosed(sub.Unsubscribe()))
	}
	out := make(chan T, subscribed)
	ctx, cancel := c.during(ctx)
	err = c.spawn(func() {
		defer close(out)
		defer cancel()
		defer func() {
			if err := ignoreClosed(sub.Unsubscribe()); err != nil {
				c.log.Warn("cannot unsubscribe", "subject", subject, "error", err)
			}
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case m, ok := <-in:
				if !ok {
					return
				}
				v, err := read(m)
				if err != nil {
					c.log.Warn("dropped an unreadable message", "subject", m.Subject, "error", err)
					continue
				}
				offer(out, v)
			}
		}
	})
	if err != nil {
		cancel()
		return nil, errors.Join(err, ignoreClosed(sub.Unsubscribe()))
	}
	return out, nil
}

// offer sends v, and drops the oldest message if the channel is full. The channel has
// one sender.
func offer[T any](out chan T, v T) {
	for {
		select {
		case out <- v:
			return
		default:
		}
		select {
		case <-out:
		default:
		}
	}
}

func (c *client) flush(ctx context.Context) error {
	ctx, cancel := c.request(ctx)
	defer cancel()
	if err := c.nc.FlushWithContext(ctx); err != nil {
		return c.explain(fmt.Errorf("flush: %w", err))
	}
	return nil
}

// ignoreClosed ignores the error of unsubscribing on a connection that is already
// closed.
func ignoreClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}

// Heartbeats implements messaging.Leader.
func (l *Leader) Heartbeats(ctx context.Context) (<-chan messaging.Heartbeat, error) {
	return subscribe(ctx, l.client, messaging.Filter(messaging.KindHeartbeat, l.shard),
		func(m *nats.Msg) (h messaging.Heartbeat, err error) {
			return h, decode(m.Subject, m.Header, m.Data, &h)
		})
}

// Logs implements messaging.Leader.
func (l *Leader) Logs(ctx context.Context, worker string) (<-chan messaging.LogPart, error) {
	if !messaging.ValidWorker(worker) {
		return nil, fmt.Errorf("logs of worker %q: not a valid name", worker)
	}
	s := messaging.Subject{Kind: messaging.KindLog, Shard: l.shard, Worker: worker}
	return subscribe(ctx, l.client, s.String(), func(m *nats.Msg) (p messaging.LogPart, err error) {
		return p, decode(m.Subject, m.Header, m.Data, &p)
	})
}
