package natsbus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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

// Measurements implements messaging.Leader. In a cluster, the other servers know
// of the subscription a moment after it returns; History has what is missed.
func (l *Leader) Measurements(ctx context.Context) (<-chan messaging.Measurement, error) {
	return subscribe(ctx, l.client, messaging.Filter(messaging.KindMetric, l.shard), readMeasurement)
}

// Heartbeats implements messaging.Leader.
func (l *Leader) Heartbeats(ctx context.Context) (<-chan messaging.Heartbeat, error) {
	return subscribe(ctx, l.client, messaging.Filter(messaging.KindHeartbeat, l.shard),
		func(m *nats.Msg) (h messaging.Heartbeat, err error) {
			return h, decode(m.Subject, m.Header, m.Data, &h)
		})
}

func readMeasurement(m *nats.Msg) (v messaging.Measurement, err error) {
	return v, decode(m.Subject, m.Header, m.Data, &v)
}

// historyBatch is how many stored measurements are fetched at once.
const historyBatch = 500

// History implements messaging.Leader. Measurements that cannot be decoded are
// left out.
func (l *Leader) History(ctx context.Context, study string, trial, attempt int) ([]messaging.Measurement, error) {
	s := messaging.Subject{Kind: messaging.KindMetric, Shard: l.shard,
		ID: messaging.AttemptID{Study: study, Trial: trial, Attempt: attempt}}
	if _, err := messaging.ParseSubject(s.String()); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	ctx, cancel := l.request(ctx)
	defer cancel()
	consumer, err := l.js.CreateConsumer(ctx, streamMetric, jetstream.ConsumerConfig{
		FilterSubject:     s.String(),
		DeliverPolicy:     jetstream.DeliverAllPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: readerIdle,
	})
	if err != nil {
		return nil, l.explain(fmt.Errorf("history of %s: %w", s, err))
	}
	defer func() {
		if err := l.js.DeleteConsumer(ctx, streamMetric, consumer.CachedInfo().Name); err != nil {
			l.log.Debug("cannot delete a consumer: it will expire", "stream", streamMetric, "error", err)
		}
	}()
	return l.collect(ctx, consumer)
}

// collect fetches what the consumer has pending now.
func (l *Leader) collect(ctx context.Context, consumer jetstream.Consumer) ([]messaging.Measurement, error) {
	left := int(min(consumer.CachedInfo().NumPending, 1<<20))
	all := make([]messaging.Measurement, 0, left)
	pause := newContention()
	for left > 0 {
		got, err := l.fetchStored(ctx, consumer, min(left, historyBatch), &all)
		// In a cluster another server may not know the new consumer yet.
		if errors.Is(err, nats.ErrNoResponders) && got == 0 && pause.wait(ctx) {
			continue
		}
		if err != nil {
			return nil, l.explain(fmt.Errorf("history: %w", err))
		}
		if got == 0 {
			break // the rest was discarded meanwhile
		}
		left -= got
	}
	return all, nil
}

// fetchStored fetches up to n stored measurements and says how many messages came.
func (l *Leader) fetchStored(ctx context.Context, consumer jetstream.Consumer, n int, all *[]messaging.Measurement) (got int, err error) {
	batch, err := consumer.Fetch(n, jetstream.FetchContext(ctx))
	if err != nil {
		return 0, err
	}
	for m := range batch.Messages() {
		got++
		var v messaging.Measurement
		if err := decode(m.Subject(), m.Headers(), m.Data(), &v); err != nil {
			l.log.Warn("skipped an unreadable measurement", "subject", m.Subject(), "error", err)
			continue
		}
		*all = append(*all, v)
	}
	return got, batch.Error()
}
