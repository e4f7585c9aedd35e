package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/seal"
)

// Term is one candidate's time as the leader. It is safe for concurrent use.
type Term struct {
	// Key is the leader's key and Epoch its create-revision, which is larger in
	// every later term.
	Key   string
	Epoch int64
	Lease clientv3.LeaseID

	c      *Candidate
	ctx    context.Context
	cancel context.CancelCauseFunc
	// renewed is closed when the renewals have ended.
	renewed chan struct{}

	mu sync.Mutex
	// until is the time at which the leader fences itself.
	until time.Time
}

// takeKey tries to create the key under a new lease. It returns nil if another candidate
// was first.
func (c *Candidate) takeKey(ctx context.Context) (*Term, error) {
	sent := time.Now()
	grantCtx, cancel := context.WithTimeout(ctx, c.ttl()/3)
	grant, err := c.Client.Grant(grantCtx, int64(c.ttl()/time.Second))
	cancel()
	if err != nil {
		return nil, fmt.Errorf("grant a lease: %w", err)
	}
	t := &Term{Key: c.Key, Lease: grant.ID, c: c, renewed: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.extend(sent)
	go t.renew()
	if c.hooks.granted != nil {
		c.hooks.granted(t.Lease)
	}
	won, err := t.create()
	if err != nil || !won {
		t.resign()
		return nil, err
	}
	return t, nil
}

// create creates the key and reads it back. The read decides, as the answer to the
// creation may be lost.
func (t *Term) create() (won bool, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.c.ttl()/3)
	defer cancel()
	_, errCreate := t.c.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(t.Key), "=", 0)).
		Then(clientv3.OpPut(t.Key, seal.Seal(t.Key, []byte(t.c.Value)), clientv3.WithLease(t.Lease))).
		Commit()
	if t.c.hooks.created != nil {
		t.c.hooks.created(t.Lease)
	}
	resp, err := t.c.get(t.ctx)
	if err != nil {
		return false, errors.Join(err, errCreate)
	}
	if len(resp.Kvs) == 0 || resp.Kvs[0].Lease != int64(t.Lease) {
		return false, errCreate
	}
	t.mu.Lock()
	t.Epoch = resp.Kvs[0].CreateRevision
	t.mu.Unlock()
	return t.ctx.Err() == nil, nil
}

// renew renews the lease until the term ends, and ends the term if it cannot.
func (t *Term) renew() {
	defer close(t.renewed)
	tick := time.NewTicker(t.c.ttl() / 6)
	defer tick.Stop()
	for {
		fence := time.NewTimer(time.Until(t.deadline()))
		select {
		case <-t.ctx.Done():
			fence.Stop()
			return
		case <-fence.C:
			t.cancel(ErrSelfFenced)
			return
		case <-tick.C:
			fence.Stop()
		}
		if err := t.renewOnce(); errors.Is(err, ErrLost) {
			t.cancel(err)
			return
		} else if err != nil {
			t.c.log().Debug("the lease was not renewed", "key", t.Key, "error", err)
		}
	}
}

// renewOnce renews the lease and checks that the key is still the term's own, as
// someone may have deleted it. Its error wraps ErrLost only if that is certain.
func (t *Term) renewOnce() error {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(t.ctx, min(time.Until(t.deadline()), t.c.ttl()/6))
	defer cancel()
	_, err := t.c.Client.KeepAliveOnce(ctx, t.Lease)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return ErrLost
	case err != nil:
		return err
	}
	t.extend(sent)
	resp, err := t.c.Client.Get(ctx, t.Key)
	if err != nil {
		return err
	}
	if epoch := t.epoch(); epoch != 0 && (len(resp.Kvs) == 0 || resp.Kvs[0].CreateRevision != epoch) {
		return fmt.Errorf("%w: %s was deleted", ErrLost, t.Key)
	}
	return nil
}

func (t *Term) deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

// epoch returns Epoch, or 0 before the key is created.
func (t *Term) epoch() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Epoch
}

// extend moves the deadline to two thirds of the time to live after a renewal
// was sent.
func (t *Term) extend(sent time.Time) {
	ttl := t.c.ttl()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = sent.Add(ttl * 2 / 3)
	if t.c.hooks.noSelfFence {
		t.until = sent.Add(1000 * ttl)
	}
}

// resign ends the term and revokes the lease, which frees the key at once. If etcd does
// not answer, the lease expires.
func (t *Term) resign() {
	t.cancel(context.Canceled)
	<-t.renewed
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.c.ttl()/3)
	defer cancel()
	if err := revoke(ctx, t.c.Client, t.Lease); err != nil {
		t.c.log().Warn("cannot revoke the lease: it will expire", "key", t.Key, "ttl", t.c.ttl(), "error", err)
	}
}

// revoke ends a lease; a missing lease is not an error.
func revoke(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) error {
	if _, err := client.Revoke(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("revoke lease %x: %w", id, err)
	}
	return nil
}
