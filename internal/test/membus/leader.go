package membus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fantasia-hpo/fantasia/messaging"
)

var (
	_ messaging.Leader = (*Leader)(nil)
	_ messaging.Reader = (*reader)(nil)
)

// maxAssign is the largest number of assignments in one Assign, as on JetStream.
const maxAssign = 1000

// Leader is a leader's bus. It implements messaging.Leader.
type Leader struct {
	*party
	turn  chan struct{} // one token: whoever has it uses epoch
	epoch int64         // of the last successful Fence
}

// Leader attaches another leader.
func (b *Broker) Leader() *Leader { return b.Replica("") }

// Replica attaches another leader, whose events have a name.
func (b *Broker) Replica(name string) *Leader {
	l := &Leader{party: newParty(b, messaging.LeaderName), turn: make(chan struct{}, 1)}
	l.replica = name
	l.turn <- struct{}{}
	return l
}

// Setup implements messaging.Leader.
func (l *Leader) Setup(ctx context.Context, pools []string) error {
	return l.withBroker(ctx, func(b *Broker) error {
		for _, pool := range pools {
			if !messaging.ValidToken(pool) {
				return fmt.Errorf("pool %q: not a valid token", pool)
			}
		}
		for _, pool := range pools {
			b.pools[pool] = true
		}
		b.wake()
		return nil
	})
}

// lockFence waits for the turn to use the epoch.
func (l *Leader) lockFence(ctx context.Context) error {
	select {
	case <-l.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.life.Done():
		return messaging.ErrClosed
	}
}

func (l *Leader) unlockFence() { l.turn <- struct{}{} }

// Fence implements messaging.Leader.
func (l *Leader) Fence(ctx context.Context, epoch int64) error {
	if epoch < 1 {
		return fmt.Errorf("epoch %d: must be at least 1", epoch)
	}
	if err := l.lockFence(ctx); err != nil {
		return err
	}
	defer l.unlockFence()
	err := l.act(ctx, OpFence, messaging.Filter(messaging.KindFence, messaging.Shard), func() error {
		return l.b.raise(epoch)
	})
	if err == nil {
		l.epoch = epoch
	}
	return err
}

// raise sets the fence. The caller MUST hold mu.
func (b *Broker) raise(epoch int64) error {
	if b.epoch > epoch {
		return &messaging.Fenced{Stored: b.epoch, Own: epoch}
	}
	b.epoch = epoch
	return nil
}

// Assign implements messaging.Leader.
func (l *Leader) Assign(ctx context.Context, as []*messaging.Assignment) error {
	if len(as) == 0 {
		return nil
	}
	if len(as) > maxAssign {
		return fmt.Errorf("%d assignments: at most %d at once", len(as), maxAssign)
	}
	msgs := make([]message, len(as))
	for i, a := range as {
		m, err := newMessage(a)
		if err != nil {
			return err
		}
		msgs[i] = m
	}
	if err := l.lockFence(ctx); err != nil {
		return err
	}
	defer l.unlockFence()
	if l.epoch == 0 {
		return errors.New("assign: call Fence first")
	}
	return l.act(ctx, OpAssign, msgs[0].subject, func() error {
		if err := l.b.raise(l.epoch); err != nil {
			return err
		}
		for i, m := range msgs {
			l.b.enqueue(as[i].Pool, m)
		}
		return nil
	})
}

// Withdraw implements messaging.Leader.
func (l *Leader) Withdraw(ctx context.Context, a *messaging.Assignment) error {
	m, err := newMessage(a.Withdrawal())
	if err != nil {
		return err
	}
	return l.act(ctx, OpClaim, m.subject, func() error {
		claims := l.b.claims()
		i := slices.IndexFunc(claims.records, func(r record) bool { return r.subject == m.subject })
		if i < 0 {
			claims.append(m)
			return nil
		}
		var first messaging.Claim
		if claims.records[i].decode(&first) == nil &&
			first.Worker == messaging.LeaderName && first.Nonce == a.Nonce {
			return nil
		}
		return fmt.Errorf("%w: %s", messaging.ErrClaimed, m.subject)
	})
}

// Last implements messaging.Leader.
func (l *Leader) Last(ctx context.Context, s messaging.Stream) (last uint64, err error) {
	err = l.withBroker(ctx, func(b *Broker) error {
		j := b.streams[s]
		if j == nil {
			return errStream(s)
		}
		if n := len(j.records); n > 0 {
			last = j.records[n-1].sequence
		}
		return nil
	})
	return last, err
}

func errStream(s messaging.Stream) error {
	return fmt.Errorf("stream %q: must be %s, %s or %s", s, messaging.StreamClaim, messaging.StreamResult, messaging.StreamMetric)
}

// Heartbeats implements messaging.Leader.
func (l *Leader) Heartbeats(ctx context.Context) (<-chan messaging.Heartbeat, error) {
	return subscribe(ctx, l.party, l.b.heartbeats, "")
}

// Control implements messaging.Leader.
func (l *Leader) Control(ctx context.Context, c *messaging.Control) error {
	m, err := newMessage(c)
	if err != nil {
		return err
	}
	return l.tellBroker(ctx, OpControl, m.subject, func() { deliver(l.b.controls, c.Worker, m) })
}

// Logs implements messaging.Leader.
func (l *Leader) Logs(ctx context.Context, worker string) (<-chan messaging.LogPart, error) {
	if !messaging.ValidWorker(worker) {
		return nil, fmt.Errorf("logs of worker %q: not a valid name", worker)
	}
	return subscribe(ctx, l.party, l.b.logs, worker)
}

// Bury implements messaging.Leader.
func (l *Leader) Bury(ctx context.Context, subject, reason string, raw []byte) error {
	return l.withBroker(ctx, func(b *Broker) error {
		if len(raw) > maxDead {
			return fmt.Errorf("bury: %w: %d bytes, at most %d", messaging.ErrTooLarge, len(raw), maxDead)
		}
		b.bury(l.name, subject, reason, raw)
		return nil
	})
}

// Purge implements messaging.Leader.
func (l *Leader) Purge(ctx context.Context, study string, all bool) error {
	return l.withBroker(ctx, func(b *Broker) error {
		if !messaging.ValidToken(study) {
			return fmt.Errorf("study %q: not a valid token", study)
		}
		b.queue = slices.DeleteFunc(b.queue, func(q *queued) bool { return ofStudy(q.subject, study) })
		if all {
			for _, j := range b.streams {
				j.purge(study)
			}
		}
		return nil
	})
}

// Healthy implements messaging.Leader.
func (l *Leader) Healthy(ctx context.Context) error {
	return l.act(ctx, OpHealthy, "", func() error { return nil })
}
