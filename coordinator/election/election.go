// Package election chooses one leader among the replicas of a shard through
// etcd. It is a lease loop of the project's own, built on these rules:
//
//   - There is one key. Who creates it leads; its create-revision is the epoch.
//     A candidate that waits watches for the key's deletion and holds no lease,
//     so there is none whose loss it could overlook.
//   - The lease is renewed every sixth of its time to live. Its deadline is
//     counted from when the renewal was sent, not from the answer, and the
//     leader stops by itself at two thirds of the time to live: before etcd
//     could let anyone else lead.
//   - After the key was created, a linearizable read has to find it with this
//     candidate's lease; whatever etcd answered before does not count.
//   - Everything under a term runs in a context that the lease's loss cancels.
//   - A leader that stops revokes its lease, so that the next one leads at once.
//
// None of this keeps a leader that was stopped for long from acting late: its
// writes are fenced by the epoch (see package ledger).
package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// DefaultTTL is how long a dead leader's key lives.
	DefaultTTL = 6 * time.Second
	// MinTTL is the least time to live: etcd rounds shorter ones up to about
	// one and a half of its election timeouts, and renewals need some room.
	MinTTL = 2 * time.Second
	// firstPause is how long a candidate waits after a failure before it tries
	// again; it doubles up to lastPause, and a random share of it is added.
	firstPause = 250 * time.Millisecond
	lastPause  = 2 * time.Second
)

// ValidTTL reports whether a lease can have the time to live: whole seconds, at
// least MinTTL.
func ValidTTL(ttl time.Duration) bool { return ttl >= MinTTL && ttl%time.Second == 0 }

var (
	// ErrLost says that the lease or the key is gone.
	ErrLost = errors.New("leadership was lost: the lease is gone")
	// ErrSelfFenced says that the lease could not be renewed in time, so that
	// it may be gone.
	ErrSelfFenced = errors.New("leadership was given up: the lease was not renewed in time")
	// ErrNoLeader says that nobody leads now.
	ErrNoLeader = errors.New("there is no leader")
)

// Candidate takes part in the election of a shard's leader. Client and Key are
// required. Its fields must not change while it runs.
type Candidate struct {
	Client *clientv3.Client
	// Key is what the candidates compete for.
	Key string
	// Value is what the key holds while this candidate leads: how to reach it.
	Value string
	// TTL is the lease's time to live, in whole seconds; 0 means DefaultTTL.
	TTL time.Duration
	// Healthy says why the candidate should not lead now; nil means that it may.
	// It is asked before each attempt to take the key. Nil asks nobody.
	Healthy func(ctx context.Context) error
	// Logger gets the turns of the election. Nil discards them.
	Logger *slog.Logger

	hooks hooks
}

// hooks let tests break the rules, or break in between two of them.
type hooks struct {
	// noSelfFence keeps leading after two thirds of the time to live.
	noSelfFence bool
	// granted and created run after these steps of taking the key.
	granted, created func(clientv3.LeaseID)
}

// Run competes until ctx ends, and returns its cause. Each time that the
// candidate wins, it calls lead with the term and a context that ends with the
// term (context.Cause is then ErrLost or ErrSelfFenced); when lead returns, it
// resigns, and competes again. An error of lead is logged, and gives the others
// a head start.
func (c *Candidate) Run(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	if err := c.validate(); err != nil {
		return err
	}
	pause := firstPause
	for ctx.Err() == nil {
		err := c.once(ctx, lead)
		if err == nil || ctx.Err() != nil {
			pause = firstPause
			continue
		}
		c.log().Warn("the election starts over", "key", c.Key, "error", err)
		wait(ctx, pause+rand.N(pause))
		pause = min(2*pause, lastPause)
	}
	return context.Cause(ctx)
}

func (c *Candidate) validate() error {
	switch {
	case c.Client == nil:
		return errors.New("candidate: Client is nil; it must be a client of etcd")
	case c.Key == "":
		return errors.New("candidate: Key is empty; it must be the shard's leader key")
	case c.TTL != 0 && !ValidTTL(c.TTL):
		return fmt.Errorf("candidate: TTL is %s; it must be whole seconds, at least %s", c.TTL, MinTTL)
	}
	return nil
}

// once waits for the key to be free, tries to take it, and leads if it did.
func (c *Candidate) once(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	if err := c.awaitVacancy(ctx); err != nil {
		return err
	}
	if err := c.fit(ctx); err != nil {
		return fmt.Errorf("not fit to lead: %w", err)
	}
	t, err := c.take(ctx)
	if t == nil || err != nil {
		return err
	}
	c.log().Info("leading", "key", c.Key, "epoch", t.Epoch)
	err = lead(t.ctx, t)
	cause := context.Cause(t.ctx)
	t.resign()
	c.log().Info("no longer leading", "key", c.Key, "epoch", t.Epoch, "cause", cause, "error", err)
	return err
}

// fit asks Healthy, which may take as long as a lease lives.
func (c *Candidate) fit(ctx context.Context) error {
	if c.Healthy == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.ttl())
	defer cancel()
	return c.Healthy(ctx)
}

// awaitVacancy returns when the key does not exist.
func (c *Candidate) awaitVacancy(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	resp, err := c.get(ctx)
	if err != nil {
		return err
	}
	if len(resp.Kvs) == 0 {
		return nil
	}
	for w := range c.Client.Watch(ctx, c.Key, clientv3.WithRev(resp.Header.Revision+1), clientv3.WithFilterPut()) {
		if err := w.Err(); err != nil {
			return fmt.Errorf("watch the leader's key: %w", err)
		}
		if len(w.Events) > 0 {
			return nil
		}
	}
	return fmt.Errorf("watch the leader's key: %w", errors.Join(errors.New("the watch was closed"), ctx.Err()))
}

func (c *Candidate) get(ctx context.Context) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.ttl())
	defer cancel()
	resp, err := c.Client.Get(ctx, c.Key)
	if err != nil {
		return nil, fmt.Errorf("read the leader's key: %w", err)
	}
	return resp, nil
}

func (c *Candidate) ttl() time.Duration {
	if c.TTL == 0 {
		return DefaultTTL
	}
	return c.TTL
}

func (c *Candidate) log() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Leader returns what the leader of a key advertises, and its epoch. The error
// wraps ErrNoLeader where nobody leads.
func Leader(ctx context.Context, client *clientv3.Client, key string) (value string, epoch int64, err error) {
	resp, err := client.Get(ctx, key)
	if err != nil {
		return "", 0, fmt.Errorf("read the leader's key: %w", err)
	}
	if len(resp.Kvs) == 0 {
		return "", 0, fmt.Errorf("%w of %s", ErrNoLeader, key)
	}
	return string(resp.Kvs[0].Value), resp.Kvs[0].CreateRevision, nil
}

// Clear frees a key whose leader is known to be dead, by revoking its lease.
// Never call it where another process may be leading.
func Clear(ctx context.Context, client *clientv3.Client, key string) error {
	resp, err := client.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read the leader's key: %w", err)
	}
	for _, kv := range resp.Kvs {
		if kv.Lease != 0 {
			if err := revoke(ctx, client, clientv3.LeaseID(kv.Lease)); err != nil {
				return err
			}
		}
		if _, err := client.Delete(ctx, key); err != nil {
			return fmt.Errorf("delete the leader's key: %w", err)
		}
	}
	return nil
}
