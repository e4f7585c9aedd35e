// Package sidecar evaluates trials by training code that keeps its own loop and
// fetches them itself, over HTTP on this machine: next, report, should-stop,
// complete. The worker takes a trial only while training code waits for one.
package sidecar

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const (
	// linger is how long a client that has waited counts as waiting still: the
	// pause between two of its requests.
	linger = 3 * time.Second
	// offerTimeout is how long a claimed attempt waits for a client to take it.
	offerTimeout = 10 * time.Second
	// maxHanded is how often a client may get the same attempt: again after an
	// answer that was lost, or that it has lost by dying. Whoever dies of it
	// more often would die of it for ever.
	maxHanded = 3
	// maxPast bounds how many ended attempts are known still.
	maxPast = 256
	// maxPolls bounds how many requests wait for a trial at once.
	maxPolls = 1024
	// durableTimeout bounds how long the answer to a completion waits for the disk.
	durableTimeout = 10 * time.Second
)

// DefaultClientTimeout is how long training code may say nothing about its trial.
const DefaultClientTimeout = 15 * time.Minute

// Options say how a Sidecar serves its clients.
type Options struct {
	// Slots is the worker's number of slots.
	Slots int
	// Checkpoints is where trials keep checkpoints, as the clients see it; empty
	// tells them none.
	Checkpoints string
	// ClientTimeout is how long a client may say nothing about the trial that it
	// has, before the attempt fails; 0 means for ever.
	ClientTimeout time.Duration
	// Leave is called once, when a client asks for the hand-back: the worker
	// shall leave. It must not block.
	Leave func()
	// Logger may be nil.
	Logger *slog.Logger
}

// Sidecar stands between the slots of a worker and the clients that evaluate
// their attempts. Safe for concurrent use.
type Sidecar struct {
	options Options
	// gone is closed when clients get no more grace.
	gone    chan struct{}
	abandon func()

	mu sync.Mutex
	// changed is closed, and made anew, with every change that others wait for.
	changed    chan struct{}
	clients    map[string]*client
	open       map[string]*attempt
	past       map[string]*attempt
	pastIDs    []string // oldest first
	offered    []*attempt
	reserved   int // slots that fetch an attempt for a client that waits
	polls      int
	leaving    bool
	handedBack bool
}

// client is one loop of training code.
type client struct {
	polls int
	// until is when a client that does not ask now has gone.
	until time.Time
	// attempt is the one that it has taken and not ended.
	attempt *attempt
}

// New returns a Sidecar, which serves nobody yet: see Handler and Evaluator.
func New(o Options) (*Sidecar, error) {
	if o.Slots < 1 {
		return nil, fmt.Errorf("sidecar: slots %d, must be at least 1", o.Slots)
	}
	if o.ClientTimeout < 0 {
		return nil, fmt.Errorf("sidecar: client timeout %s, must not be negative", o.ClientTimeout)
	}
	if o.Leave == nil {
		return nil, errors.New("sidecar: nothing to call for the hand-back")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	gone := make(chan struct{})
	return &Sidecar{
		options: o, gone: gone, abandon: sync.OnceFunc(func() { close(gone) }), changed: make(chan struct{}),
		clients: map[string]*client{}, open: map[string]*attempt{}, past: map[string]*attempt{},
	}, nil
}

// Evaluator returns the evaluator of one slot, which is an evaluation.Gate.
func (s *Sidecar) Evaluator(slot int) (evaluation.Evaluator, error) {
	if slot < 0 || slot >= s.options.Slots {
		return nil, fmt.Errorf("sidecar: slot %d of %d", slot, s.options.Slots)
	}
	return &evaluator{sidecar: s, slot: slot}, nil
}

// HandBack begins to hand back: clients get no more trials and are told to stop
// those that they have, and Options.Leave is called. It returns how many are open.
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

// Terminate says that the worker was told to end. Where HandBack was called
// before, that means that the clients have ended (a sidecar of Kubernetes is told
// last), and what is open is handed back at once.
func (s *Sidecar) Terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handedBack {
		s.abandon()
	}
	s.leaving = true
	s.broadcast()
}

// broadcast wakes whoever waits for a change. The caller holds the lock.
func (s *Sidecar) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// unserved is how many clients wait for whom no attempt is open or under way.
// The caller holds the lock.
func (s *Sidecar) unserved() int {
	n, now := 0, time.Now()
	for _, c := range s.clients {
		if c.attempt == nil && (c.polls > 0 || c.until.After(now)) {
			n++
		}
	}
	return n - len(s.offered) - s.reserved
}

// nextGone is when the next client that does not ask now will have gone; zero
// where there is none. The caller holds the lock.
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

// client returns the client of a name. The caller holds the lock.
func (s *Sidecar) client(name string) *client {
	c := s.clients[name]
	if c == nil {
		c = &client{}
		s.clients[name] = c
	}
	return c
}

// forget drops the clients that have gone. The caller holds the lock.
func (s *Sidecar) forget() {
	now := time.Now()
	for name, c := range s.clients {
		if c.attempt == nil && c.polls == 0 && !c.until.After(now) {
			delete(s.clients, name)
		}
	}
}
