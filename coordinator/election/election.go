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
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/study"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

const (
	// DefaultTTL is the time to live of a dead leader's key.
	DefaultTTL = 6 * time.Second
	// MinTTL is the least time to live: etcd rounds shorter ones up to about one and a
	// half of its election timeouts, and renewals need some margin.
	MinTTL = 2 * time.Second
	// firstPause is the longest time for which a candidate waits after a failure. It grows
	// with each failed term, up to lastPause, but not while the candidate is not fit to lead,
	// so that there is a leader soon after all servers have started.
	firstPause = 500 * time.Millisecond
	lastPause  = 4 * time.Second
	// lookAgain bounds how long a candidate watches the leader's key without reading it: an
	// etcd that was rolled back reaches the revision to watch from late, or never.
	lookAgain = 30 * time.Second
)

// ValidTTL reports whether ttl is a valid time to live of a lease: whole seconds, at
// least MinTTL.
func ValidTTL(ttl time.Duration) bool { return ttl >= MinTTL && ttl%time.Second == 0 }

var (
	// ErrLost means that the lease or the key is gone.
	ErrLost = errors.New("leadership was lost: the lease is gone")
	// ErrSelfFenced means that the lease could not be renewed in time and may be gone.
	ErrSelfFenced = errors.New("leadership was given up: the lease was not renewed in time")
	// ErrNoLeader means that there is no leader now.
	ErrNoLeader = study.NewError(study.ErrUnavailable, "there is no leader")

	// errUnfit means that a candidate has not tried to lead.
	errUnfit = errors.New("not fit to lead")
)

// Candidate takes part in the election of a shard's leader. Client and Key are
// required. Its fields MUST NOT change while it runs.
type Candidate struct {
	Client *clientv3.Client
	// Key is the key for which the candidates compete.
	Key string
	// Value is the key's value while this candidate leads: the address at which to
	// reach it.
	Value string
	// TTL is the lease's time to live, in whole seconds; 0 means DefaultTTL.
	TTL time.Duration
	// Healthy returns why the candidate should not lead now, or nil. It is called
	// before each attempt to take the key. It may be nil.
	Healthy func(ctx context.Context) error
	// Logger receives the events of the election; nil discards them.
	Logger *slog.Logger

	hooks hooks
}

// hooks let tests break the rules, or interrupt the steps between two of them.
type hooks struct {
	// noSelfFence keeps leading after two thirds of the time to live.
	noSelfFence bool
	// granted and created are called after these steps of taking the key.
	granted, created func(clientv3.LeaseID)
}

// Run competes until ctx ends, and returns its cause. Each time the candidate wins, Run
// calls lead with the term and a context that ends with the term (context.Cause is then
// ErrLost or ErrSelfFenced). When lead returns, the candidate resigns and competes
// again. An error of lead is logged, and gives the other candidates a head start.
func (c *Candidate) Run(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	if err := c.validate(); err != nil {
		return err
	}
	pause, said := backoff.New(firstPause, lastPause), ""
	for ctx.Err() == nil {
		err := c.once(ctx, lead)
		if err == nil || ctx.Err() != nil {
			pause.Reset()
			said = ""
			continue
		}
		level := slog.LevelWarn
		if err.Error() == said {
			level = slog.LevelDebug
		}
		said = err.Error()
		c.log().Log(ctx, level, "restarting the election", "key", c.Key, "error", err)
		pause.Wait(ctx)
		if errors.Is(err, errUnfit) {
			pause.Reset()
		}
	}
	return context.Cause(ctx)
}

func (c *Candidate) validate() error {
	switch {
	case c.Client == nil:
		return errors.New("candidate: Client is nil; want a client of etcd")
	case c.Key == "":
		return errors.New("candidate: Key is empty; want the shard's leader key")
	case c.TTL != 0 && !ValidTTL(c.TTL):
		return fmt.Errorf("candidate: TTL is %s; want whole seconds, at least %s", c.TTL, MinTTL)
	}
	return nil
}

// once waits for the key to be free, tries to take it, and leads if it succeeds.
func (c *Candidate) once(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	if err := c.awaitVacancy(ctx); err != nil {
		return fmt.Errorf("%w: %w", errUnfit, err)
	}
	if err := c.fit(ctx); err != nil {
		return fmt.Errorf("%w: %w", errUnfit, err)
	}
	t, err := c.takeKey(ctx)
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

// fit calls Healthy, which may take as long as a lease lives.
func (c *Candidate) fit(ctx context.Context) error {
	if c.Healthy == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.ttl())
	defer cancel()
	return c.Healthy(ctx)
}

// awaitVacancy returns when the key does not exist. It looks again after every lookAgain.
func (c *Candidate) awaitVacancy(ctx context.Context) error {
	for {
		resp, err := c.get(ctx)
		if err != nil {
			return err
		}
		if len(resp.Kvs) == 0 {
			return nil
		}
		bounded, cancel := context.WithTimeout(ctx, lookAgain)
		err = c.awaitDeletion(bounded, resp.Header.Revision+1)
		late := bounded.Err() != nil && ctx.Err() == nil
		cancel()
		if !late {
			return err
		}
	}
}

// awaitDeletion returns when the key is deleted at a revision or later.
func (c *Candidate) awaitDeletion(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for w := range c.Client.Watch(ctx, c.Key, clientv3.WithRev(revision), clientv3.WithFilterPut()) {
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

// Leader returns the value of a key's leader and its epoch. The error wraps ErrNoLeader
// if there is no leader.
func Leader(ctx context.Context, client *clientv3.Client, key string) (value string, epoch int64, err error) {
	resp, err := client.Get(ctx, key)
	if err != nil {
		return "", 0, fmt.Errorf("read the leader's key: %w", err)
	}
	if len(resp.Kvs) == 0 {
		return "", 0, fmt.Errorf("%w of %s", ErrNoLeader, key)
	}
	opened, err := seal.Open(key, resp.Kvs[0].Value)
	if err != nil {
		return "", 0, fmt.Errorf("%w: the leader's address, %s: %w; the next leader replaces it", study.ErrUnavailable, key, err)
	}
	return string(opened), resp.Kvs[0].CreateRevision, nil
}

// Clear frees the key of a leader that is known to be dead, by revoking its lease.
// Never call it while another process may be leading.
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
