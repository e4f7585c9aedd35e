// Package memetcd is an etcd in memory, for simulations and for tests that start a real coordinator. Its
// leases end by the clock of testing/synctest too, and faults can hit single requests. It passes the same
// suite as a real etcd.
package memetcd

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Op names a request.
type Op string

// The requests that faults can hit.
const (
	OpRange     Op = "range"
	OpPut       Op = "put"
	OpDelete    Op = "delete"
	OpTxn       Op = "txn"
	OpCompact   Op = "compact"
	OpGrant     Op = "grant"
	OpKeepAlive Op = "keepalive"
	OpRevoke    Op = "revoke"
	OpWatch     Op = "watch" // a stream is opened
)

// Event is a request before it is executed.
type Event struct {
	Op     Op
	Client string
	// Writes says that the request may change what is stored.
	Writes bool
}

// Fault describes what goes wrong with a request; the zero Fault is no fault.
type Fault struct {
	// Lost keeps the request from etcd. Its sender gets codes.Unavailable.
	Lost bool
	// Unanswered executes the request, but its sender gets codes.Unavailable.
	Unanswered bool
	// Delay is how long the request takes to reach etcd; its sender waits.
	Delay time.Duration
	// Late is how much later than the sender's codes.Unavailable the request is
	// executed; 0 for a request that is not late.
	Late time.Duration
}

// etcdPatience is how long a client waits for an etcd that it cannot reach, as one whose
// pings go unanswered.
const etcdPatience = 13 * time.Second

// Options configure an Server.
type Options struct {
	// Fault chooses what goes wrong; nothing by default. It is called without locks by
	// the asking goroutine, so it must be safe for concurrent use.
	Fault func(Event) Fault
	// Stored is called for each value that is stored, with the server locked, before anybody
	// can read it; nil for none.
	Stored func(key string, value []byte)
	// Revision is the revision to begin with, as that of an etcd that others have used
	// before; 0 means 1, that of an empty etcd.
	Revision int64
}

// Server is an etcd in memory: the part of etcd that Fantasia uses, with the semantics of a
// real one. Both pass one suite. What Fantasia does not use is answered with
// codes.Unimplemented. It is safe for concurrent use.
//
// etcd's own code evaluates the requests, over a store in memory. Clients are real ones
// (clientv3.Client) whose requests do not go over a connection. Server and clients wait on
// channels and timers only, so that they run in a testing/synctest bubble, in which leases
// expire in virtual time. The caller decides, for each request, what goes wrong.
type Server struct {
	opts Options

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever waiters should look again
	stopped bool
	store   *etcdStore
	leases  map[int64]*etcdLease
	granted int64 // the last id of a lease
	full    bool
}

// New returns an empty etcd.
func New(o Options) *Server {
	s := &Server{opts: o, changed: make(chan struct{}), store: newStore(), leases: map[int64]*etcdLease{}}
	s.store.revision = max(s.store.revision, o.Revision)
	return s
}

// wake makes all waiters look again. The caller MUST hold mu.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Stop makes etcd answer nobody, as one that has lost its quorum.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, l := range s.leases {
		l.timer.Stop()
	}
	s.wake()
}

// Start ends a Stop. As after an election in etcd, every lease has its whole time to live
// again.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		return
	}
	s.stopped = false
	for _, l := range s.leases {
		l.timer.Reset(l.ttl)
	}
	s.wake()
}

// Wipe replaces etcd by an empty one: its keys, leases and revisions begin anew.
func (s *Server) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		l.timer.Stop()
	}
	s.store, s.leases = newStore(), map[int64]*etcdLease{}
	s.wake()
}

// SetFull says whether etcd's quota is used up, so that it refuses to store more.
func (s *Server) SetFull(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

// Revision returns the revision of the last change, and the one up to which the history
// was compacted; 0 for none.
func (s *Server) Revision() (last, compacted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.revision, s.store.compacted
}

// Value returns what a key holds now, whatever the faults; nil for none.
func (s *Server) Value(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.last(key).GetValue()
}

// present returns the store, which Wipe replaces.
func (s *Server) present() *etcdStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store
}

// Client is a client of an Server. Close it when nothing uses it any more.
type Client struct {
	*clientv3.Client
	s    *Server
	name string

	// s.mu guards these fields.
	cut    bool
	killed bool
	dead   chan struct{} // closed by Kill
}

// Client returns a client whose events have a name.
func (s *Server) Client(name string) *Client {
	c := &Client{s: s, name: name, dead: make(chan struct{})}
	c.Client = clientv3.NewCtxClient(context.Background())
	c.KV = clientv3.NewKVFromKVClient(etcdKV{c: c}, c.Client)
	c.Lease = clientv3.NewLeaseFromLeaseClient(etcdLeases{c: c}, c.Client, time.Second)
	c.Watcher = clientv3.NewWatchFromWatchClient(etcdWatches{c: c}, c.Client)
	return c
}

// Cut splits the client from etcd, or ends the split.
func (c *Client) Cut(cut bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.cut = cut
	c.s.wake()
}

// Kill ends all requests of the client, present and future ones, without executing them,
// as if its process was killed. Leases stay until they expire.
func (c *Client) Kill() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.killed {
		c.killed = true
		close(c.dead)
		c.s.wake()
	}
}

var (
	errEtcdKilled = status.Error(codes.Canceled, "etcd in memory: the client was killed")
	errEtcdLost   = status.Error(codes.Unavailable, "etcd in memory: the connection was lost")
)

// ask executes a request of a client with the fault that the server's owner chose for it.
// It calls do with the server locked.
func ask[T any](ctx context.Context, c *Client, op Op, writes bool, do func() (T, error)) (none T, _ error) {
	fault := Fault{}
	if c.s.opts.Fault != nil {
		fault = c.s.opts.Fault(Event{Op: op, Client: c.name, Writes: writes})
	}
	if err := c.sleep(ctx, fault.Delay); err != nil {
		return none, err
	}
	if err := c.reach(ctx); err != nil {
		return none, err
	}
	switch {
	case fault.Lost:
		return none, errEtcdLost
	case fault.Late > 0:
		there := c.s.present()
		time.AfterFunc(fault.Late, func() {
			if c.s.present() == there { // a new etcd does not get what was sent to the old one
				_, _ = execute(c.s, do)
			}
		})
		return none, errEtcdLost
	}
	out, err := execute(c.s, do)
	if err == nil && fault.Unanswered {
		return none, rpctypes.ErrGRPCTimeoutDueToConnectionLost
	}
	return out, err
}

// execute calls do with the server locked, unless it has stopped.
func execute[T any](s *Server, do func() (T, error)) (none T, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return none, rpctypes.ErrGRPCTimeout
	}
	return do()
}

// reach waits until the client reaches etcd.
func (c *Client) reach(ctx context.Context) error {
	var late <-chan time.Time
	for {
		c.s.mu.Lock()
		killed, away, changed := c.killed, c.cut || c.s.stopped, c.s.changed
		c.s.mu.Unlock()
		switch {
		case killed:
			return errEtcdKilled
		case ctx.Err() != nil:
			return status.FromContextError(ctx.Err()).Err()
		case !away:
			return nil
		}
		if late == nil {
			late = time.After(etcdPatience)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-late:
			return errEtcdLost
		}
	}
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-c.dead:
		return errEtcdKilled
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// unimplemented refuses what Fantasia does not use.
func unimplemented(what string) error {
	return status.Errorf(codes.Unimplemented, "etcd in memory: %s", what)
}
