// Package membus is a bus in memory, with the semantics of natsbus: a work queue
// whose acks are not ownership, claims of which the first stands, results that
// replace each other, readers with cursors, a fence. It is for simulation and
// tests: the caller decides, for each operation, what goes wrong.
//
// It starts no goroutine of its own and waits on channels and timers only, so
// that it runs in a testing/synctest bubble. Envelopes pass through their codec
// as they would on a wire.
package membus

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// ErrLost is what a sender gets if a fault took its message or the acknowledgement. As
// after a timeout, it cannot know which.
var ErrLost = errors.New("the broker did not answer")

// Op names an operation on the bus.
type Op string

// The operations that faults can hit.
const (
	OpAssign    Op = "assign"
	OpFence     Op = "fence"
	OpFetch     Op = "fetch" // an assignment on its way to a worker
	OpAck       Op = "ack"
	OpNak       Op = "nak"
	OpTerm      Op = "term"
	OpClaim     Op = "claim"
	OpResult    Op = "result"
	OpMetric    Op = "metric"
	OpHeartbeat Op = "heartbeat"
	OpControl   Op = "control"
	OpLog       Op = "log"
	OpHealthy   Op = "healthy"
)

// Event is an operation before it happens.
type Event struct {
	Op Op
	// Actor is the worker's name, or messaging.LeaderName.
	Actor string
	// Replica is the name of the leader that was attached by Broker.Replica.
	Replica string
	// Subject is the message's subject; for OpAssign, that of the first message.
	Subject string
}

// Fault describes what goes wrong with an operation; the zero Fault is no fault.
type Fault struct {
	// Lost keeps the message from the broker. For an OpFetch, the assignment is
	// delivered to nobody, and again after AckWait.
	Lost bool
	// Unanswered performs the operation, but its sender gets ErrLost.
	Unanswered bool
	// Copies is the number of additional times that the operation happens, at once.
	Copies int
	// Delay is the time that the operation takes; its sender waits.
	Delay time.Duration
}

// Options configure a Broker.
type Options struct {
	// AckWait is how long a fetched assignment is hidden; 10 s by default.
	AckWait time.Duration
	// MaxDeliver is the largest number of deliveries of an assignment; 20 by default.
	MaxDeliver int
	// Fault chooses what goes wrong; nothing by default. It is called without locks by
	// the acting goroutine, so it must be safe for concurrent use.
	Fault func(Event) Fault
}

// DeadLetter is a message in the dead-letter queue.
type DeadLetter struct {
	By      string
	Subject string
	Reason  string
	Raw     []byte
}

// Broker is shared by leaders and workers. It is safe for concurrent use.
type Broker struct {
	opts Options

	mu sync.Mutex
	// changed is closed and replaced whenever waiters should look again.
	changed chan struct{}
	epoch   int64 // the fence; 0 is none
	pools   map[string]bool
	queue   []*queued
	streams map[messaging.Stream]*stream
	claimed map[string]time.Time // the ids of stored claims, and since when
	dead    []DeadLetter

	heartbeats subscriptions[messaging.Heartbeat]
	controls   subscriptions[messaging.Control]
	logs       subscriptions[messaging.LogPart]
}

// New returns an empty broker.
func New(o Options) *Broker {
	o.AckWait = cmp.Or(o.AckWait, 10*time.Second)
	o.MaxDeliver = cmp.Or(o.MaxDeliver, 20)
	b := &Broker{
		opts: o, changed: make(chan struct{}), pools: map[string]bool{}, streams: map[messaging.Stream]*stream{},
		claimed:    map[string]time.Time{},
		heartbeats: subscriptions[messaging.Heartbeat]{}, controls: subscriptions[messaging.Control]{}, logs: subscriptions[messaging.LogPart]{},
	}
	for _, s := range []messaging.Stream{messaging.StreamClaim, messaging.StreamResult, messaging.StreamMetric} {
		b.streams[s] = newStream(time.Time{})
	}
	return b
}

// wake makes every waiter look again. The caller MUST hold mu.
func (b *Broker) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Recreate deletes a stream and creates it again, empty, as an administrator can.
func (b *Broker) Recreate(s messaging.Stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.streams[s]; j != nil {
		b.streams[s] = newStream(j.created)
	}
	if s == messaging.StreamClaim {
		b.claimed = map[string]time.Time{}
	}
	b.wake()
}

// Rewind restores a stream to the state when sequence was its last message, as a broker
// does that starts on an older copy of its store.
func (b *Broker) Rewind(s messaging.Stream, sequence uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.streams[s]; j != nil {
		j.rewind(sequence)
	}
	b.wake()
}

// WipeAssignments deletes every queued assignment and the fence.
func (b *Broker) WipeAssignments() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue, b.epoch = nil, 0
}

// Inject stores a message unchanged, with no checks but the streams' own, as a broken
// or hostile sender could. It returns false if no stream takes the subject.
func (b *Broker) Inject(subject string, raw []byte) bool {
	s, err := messaging.ParseSubject(subject)
	if err != nil {
		return false
	}
	m := message{subject: subject, data: raw}
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wake()
	switch s.Kind {
	case messaging.KindAssign:
		b.enqueue(s.Pool, m)
	case messaging.KindClaim:
		if b.claims().has(subject) {
			return false
		}
		b.claims().append(m)
	case messaging.KindResult:
		b.streams[messaging.StreamResult].replace(m)
	case messaging.KindMetric:
		b.streams[messaging.StreamMetric].append(m)
	default:
		return false
	}
	return true
}

// DeadLetters returns a copy of the dead-letter queue, oldest first.
func (b *Broker) DeadLetters() []DeadLetter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]DeadLetter(nil), b.dead...)
}

// Queued returns the number of a pool's assignments that are queued or fetched and not
// yet acknowledged.
func (b *Broker) Queued(pool string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, q := range b.queue {
		if q.pool == pool {
			n++
		}
	}
	return n
}

func (b *Broker) claims() *stream { return b.streams[messaging.StreamClaim] }

func (b *Broker) fault(e Event) Fault {
	if b.opts.Fault == nil {
		return Fault{}
	}
	return b.opts.Fault(e)
}
