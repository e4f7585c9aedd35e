package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Run campaigns for leadership, and leads while it holds it, until ctx ends.
// Then it releases leadership at once and returns nil. It hears workers all the time, also while others
// lead: every replica answers who the workers are, and reads their logs.
func (c *Coordinator) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	listening.Go(func() { c.workers.Listen(ctx, c.o.Bus, c.o.Logger) })
	if err := c.candidate.Run(ctx, c.lead); err != nil && ctx.Err() == nil {
		return fmt.Errorf("campaign: %w", err)
	}
	return nil
}

// lookAtSpace returns how full etcd is. If it refuses writes although there is room again, it ends that.
func (c *Coordinator) lookAtSpace(ctx context.Context) (ledger.Space, error) {
	space, err := c.ledger.Space(ctx)
	if err != nil {
		return space, err
	}
	reopened, err := c.ledger.Reopen(ctx, space)
	if err != nil {
		c.o.Logger.Warn("etcd has room again, but refuses writes until somebody runs etcdctl alarm disarm", telemetry.LogError, err)
	}
	if reopened {
		c.o.Logger.Info("etcd has room again: ended its alarm NOSPACE", "bytes", space.Size, "quota", space.Quota)
		space.Full = false
	}
	return space, nil
}

// reopenTimeout bounds how long a campaign waits to learn whether etcd was full: one of its members may be down.
const reopenTimeout = 2 * time.Second

// reopen lets etcd take writes again if it was full and has room: otherwise nobody could lead.
func (c *Coordinator) reopen(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, reopenTimeout)
	defer stop()
	full, err := c.ledger.Full(ctx)
	if full {
		_, err = c.lookAtSpace(ctx)
	}
	if err != nil {
		c.o.Logger.Debug("cannot look whether etcd is full", telemetry.LogError, err)
	}
}

// fit returns why this replica should not try to lead now, or nil. Each try adds to etcd's
// revisions, and so to the epochs that etcd gives. With an etcd that was rolled back, it must
// not be tried again and again: after enough tries somebody would lead.
func (c *Coordinator) fit(ctx context.Context) error {
	if err := c.o.Bus.Healthy(ctx); err != nil {
		return err
	}
	c.reopen(ctx)
	obstacle := c.obstacle.Load()
	if obstacle == nil {
		return nil
	}
	rolled, ok := errors.AsType[*rolledBack](*obstacle)
	if !ok {
		return nil
	}
	switch behind, err := c.ledger.Behind(ctx, rolled.seen); {
	case err != nil:
		return err
	case behind:
		return *obstacle
	default:
		return nil
	}
}

// setTerm sets the term to which commands go; nil means that there is none. It is called AFTER the takeover:
// before it the leader has not read the whole ledger.
func (c *Coordinator) setTerm(l *leader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term.Store(l)
	if l != nil {
		close(c.leading)
	} else {
		c.leading = make(chan struct{})
	}
}

// Leading waits until this replica leads and accepts commands. It may have lost leadership again when Leading
// returns: a command then returns ErrNotLeader.
func (c *Coordinator) Leading(ctx context.Context) error {
	c.mu.Lock()
	leading := c.leading
	c.mu.Unlock()
	select {
	case <-leading:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Obstacle returns why nobody leads although this replica was elected: its last takeover
// has failed, and nobody else has been elected since. It returns nil otherwise. Readiness probes tell it, since
// somebody may have to do something: see rolledBack.
func (c *Coordinator) Obstacle(ctx context.Context) error {
	obstacle := c.obstacle.Load()
	if obstacle == nil {
		return nil
	}
	if address, self, err := c.Leader(ctx); self || err == nil && address != c.o.Advertise {
		return nil
	}
	return *obstacle
}

// Leader returns the address of the leader's API, and whether this replica is
// the leader. Both may be out of date: the leader's own transactions decide who leads.
func (c *Coordinator) Leader(ctx context.Context) (address string, self bool, err error) {
	if c.term.Load() != nil {
		return c.o.Advertise, true, nil
	}
	address, _, err = election.Leader(ctx, c.o.Etcd, c.ledger.LeaderKey())
	if err != nil {
		return "", false, fmt.Errorf("find the leader: %w", err)
	}
	return address, false, nil
}
