// Package sidecar serves trials to training code that has its own loop and fetches them
// over HTTP on this machine: next, report, should-stop, complete. The worker takes a
// trial only while training code waits for one.
package sidecar

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const (
	// linger is the time for which a client still counts as waiting between two
	// requests.
	linger = 3 * time.Second
	// offerTimeout is the time that a claimed attempt waits for a client.
	offerTimeout = 10 * time.Second
	// maxHanded is the number of times that a client may receive the same attempt: it
	// may miss an answer, or die. A client that dies of it more often would do so
	// forever.
	maxHanded = 3
	// maxPast is the number of ended attempts that are remembered.
	maxPast = 256
	// maxPolls is the number of requests that may wait for a trial at once.
	maxPolls = 1024
	// durableTimeout limits how long the answer to a completion waits for the disk.
	durableTimeout = 10 * time.Second
)

// DefaultClientTimeout is the time that training code may be silent about its trial.
const DefaultClientTimeout = 15 * time.Minute

// Options configure how a Sidecar serves its clients.
type Options struct {
	// Slots is the worker's number of slots.
	Slots int
	// Checkpoints is the directory of checkpoints as the clients see it; empty means
	// that they are told none.
	Checkpoints string
	// ClientTimeout is the time that a client may be silent about its trial before the
	// attempt fails; 0 is no limit.
	ClientTimeout time.Duration
	// Leave is called once, when a client asks for the hand-back; the worker must then
	// leave. It MUST NOT block.
	Leave func()
	// AllowedHosts are names by which clients may call the sidecar besides localhost and
	// IP addresses, as httpserve.NewHosts takes them. Clients on a Unix socket may use any.
	AllowedHosts []string
	// Logger may be nil.
	Logger *slog.Logger
}

// Sidecar connects a worker's slots to the clients that evaluate their attempts. It is
// safe for concurrent use.
type Sidecar struct {
	options Options
	hosts   *httpserve.Hosts
	// gone is closed when the clients' grace is over.
	gone    chan struct{}
	abandon func()

	mu sync.Mutex
	// changed is closed and replaced on every change that others wait for.
	changed    chan struct{}
	clients    map[string]*client
	open       map[string]*attempt
	past       map[string]*attempt
	pastIDs    []string // oldest first
	offered    []*attempt
	reserved   int // slots that fetch an attempt for a waiting client
	polls      int
	leaving    bool
	handedBack bool
}

// client is one loop of training code.
type client struct {
	polls int
	// until is when a client that is not asking counts as gone.
	until time.Time
	// attempt is the attempt that it has taken and not ended.
	attempt *attempt
}

// New returns a Sidecar. Connect it by Handler and Evaluator.
func New(o Options) (*Sidecar, error) {
	if o.Slots < 1 {
		return nil, fmt.Errorf("sidecar: slots %d, must be at least 1", o.Slots)
	}
	if o.ClientTimeout < 0 {
		return nil, fmt.Errorf("sidecar: client timeout %s, must not be negative", o.ClientTimeout)
	}
	if o.Leave == nil {
		return nil, errors.New("sidecar: Leave is required")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	hosts, err := httpserve.NewHosts(o.AllowedHosts...)
	if err != nil {
		return nil, fmt.Errorf("sidecar: allowed hosts: %w", err)
	}
	gone := make(chan struct{})
	return &Sidecar{
		options: o, hosts: hosts, gone: gone, abandon: sync.OnceFunc(func() { close(gone) }), changed: make(chan struct{}),
		clients: map[string]*client{}, open: map[string]*attempt{}, past: map[string]*attempt{},
	}, nil
}

// Evaluator returns the evaluator of one slot, an evaluation.Gate.
func (s *Sidecar) Evaluator(slot int) (evaluation.Evaluator, error) {
	if slot < 0 || slot >= s.options.Slots {
		return nil, fmt.Errorf("sidecar: slot %d of %d", slot, s.options.Slots)
	}
	return &evaluator{sidecar: s, slot: slot}, nil
}

// HandBack starts the hand-back: clients get no more trials and are told to stop their
// current ones, and Options.Leave is called. It returns the number of open trials.
func (s *Sidecar) HandBack() int {
	s.mu.Lock()
	first := !s.handedBack
	s.handedBack, s.leaving = true, true
	n := len(s.open)
	s.broadcast()
	s.mu.Unlock()
	if first {
		s.options.Logger.Info("handing back", "open", n)
		s.options.Leave()
	}
	return n
}

// Terminate records that the worker was told to end. After HandBack this means that the
// clients have ended (Kubernetes ends a sidecar last), so open trials are handed back
// at once.
func (s *Sidecar) Terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handedBack {
		s.abandon()
	}
	s.leaving = true
	s.broadcast()
}

// broadcast wakes everyone who waits for a change. The caller MUST hold the lock.
func (s *Sidecar) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// unserved returns how many clients wait without an attempt that is open or on its way.
// The caller MUST hold the lock.
func (s *Sidecar) unserved() int {
	n, now := 0, time.Now()
	for _, c := range s.clients {
		if c.attempt == nil && (c.polls > 0 || c.until.After(now)) {
			n++
		}
	}
	return n - len(s.offered) - s.reserved
}

// nextGone returns when the next client that is not asking counts as gone; zero if
// there is none. The caller MUST hold the lock.
func (s *Sidecar) nextGone() time.Time {
	var next time.Time
	now := time.Now()
	for _, c := range s.clients {
		if c.attempt == nil && c.polls == 0 && c.until.After(now) && (next.IsZero() || c.until.Before(next)) {
			next = c.until
		}
	}
	return next
}

// client returns the client of a name. The caller MUST hold the lock.
func (s *Sidecar) client(name string) *client {
	c := s.clients[name]
	if c == nil {
		c = &client{}
		s.clients[name] = c
	}
	return c
}

// forget drops the clients that have gone. The caller MUST hold the lock.
func (s *Sidecar) forget() {
	now := time.Now()
	for name, c := range s.clients {
		if c.attempt == nil && c.polls == 0 && !c.until.After(now) {
			delete(s.clients, name)
		}
	}
}
