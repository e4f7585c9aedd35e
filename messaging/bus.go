package messaging

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrClaimed says that another claim of the attempt was first.
	ErrClaimed = errors.New("the attempt is claimed already")
	// ErrFenced says that a newer leader has taken the shard over: step down.
	ErrFenced = errors.New("a newer leader has fenced this one")
	// ErrClosed says that the bus was closed.
	ErrClosed = errors.New("the bus is closed")
)

// Worker is what one worker needs of a bus. Its methods are safe for concurrent
// use and return when their context ends.
type Worker interface {
	// Fetch waits for one assignment of the worker's pool.
	Fetch(ctx context.Context) (Delivery, error)
	// Claim takes an attempt; ErrClaimed where somebody else was first. id is
	// fresh for each fetched delivery and kept over retries of one claim, so
	// that a retry whose first try was stored succeeds.
	Claim(ctx context.Context, id string, c *Claim) error
	// Publish stores a result; sending one again replaces it and makes the
	// leader read it again.
	PublishResult(ctx context.Context, r *Result) error
	PublishMeasurement(ctx context.Context, m *Measurement) error
	// Heartbeat is sent without acknowledgement.
	Heartbeat(ctx context.Context, h *Heartbeat) error
	// Controls delivers the leader's messages to this worker until ctx ends.
	// Messages sent while nobody listens are lost: senders repeat.
	Controls(ctx context.Context) (<-chan Control, error)
	// SendLog answers a request for a part of a log. It is sent without
	// acknowledgement and not stored.
	SendLog(ctx context.Context, p *LogPart) error
	Close() error
}

// Delivery is one fetched assignment.
type Delivery interface {
	// Assignment is valid where Err is nil.
	Assignment() *Assignment
	// Err says why the message could not be decoded; it is then a poison
	// message, to be terminated.
	Err() error
	// Ack removes the assignment from the queue.
	Ack(ctx context.Context) error
	// Nak gives it back, to be delivered again after the delay.
	Nak(ctx context.Context, delay time.Duration) error
	// Term removes a message that nobody can read, to the dead-letter queue.
	Term(ctx context.Context, reason string) error
}

// Stream names what the leader reads from a cursor.
type Stream string

// The streams that the leader reads in order.
const (
	StreamClaim  Stream = "CLAIM"
	StreamResult Stream = "RESULT"
)

// Cursor is a place in a stream: everything up to and including Sequence has
// been committed to the ledger. The zero Cursor is before the first message.
type Cursor struct {
	// Created is the stream's creation time. A stream that was deleted and made
	// anew has another, and must be read from its first message.
	Created time.Time `json:"created"`
	// Sequence and Timestamp are those of the last message read. A message at
	// Sequence with another timestamp means that the store went back in time.
	Sequence  uint64    `json:"sequence"`
	Timestamp time.Time `json:"timestamp"`
}

// Entry is one message of a stream that the leader reads. Exactly one of Claim,
// Result and Err is set.
type Entry struct {
	Stream Stream
	// Cursor is the place after this entry: commit it with what the entry changed.
	Cursor Cursor
	Claim  *Claim
	Result *Result
	// Raw and Subject are the message as it came, for the dead-letter queue.
	Raw     []byte
	Subject string
	// Err says why the message could not be decoded; ID and Worker are then what
	// the subject says of it (no nonce).
	Err    error
	ID     AttemptID
	Worker string
}

// Leader is what a shard's leader needs of a bus. Its methods are safe for
// concurrent use and return when their context ends.
type Leader interface {
	// Setup creates or updates the streams and the pools' consumers. Safe to repeat.
	Setup(ctx context.Context, pools []string) error
	// Fence takes the shard over for epoch: every publish of an older leader
	// fails from now on. ErrFenced where a newer epoch holds it.
	Fence(ctx context.Context, epoch int64) error
	// Assign publishes assignments; ErrFenced after a newer Fence, after which
	// none is stored. After another error it is not known which were stored:
	// publishing them again is harmless.
	Assign(ctx context.Context, as []*Assignment) error
	// Withdraw claims a queued attempt for the leader itself, so that no worker
	// can; ErrClaimed where a worker was first.
	Withdraw(ctx context.Context, a *Assignment) error
	// Last is the sequence of the stream's last message now, 0 if none.
	Last(ctx context.Context, s Stream) (uint64, error)
	// Read delivers entries after the cursor, in order, until ctx ends or the
	// reader is broken. Where the stream is not the one that the cursor was
	// taken from, it delivers from the first message. It notices, within its
	// check interval, a stream that was deleted and created again under it.
	Read(ctx context.Context, s Stream, from Cursor) (Reader, error)
	// Measurements delivers every measurement published from now on; where the
	// reader is too slow, the oldest are dropped.
	Measurements(ctx context.Context) (<-chan Measurement, error)
	// History returns the stored measurements of an attempt, oldest first.
	History(ctx context.Context, study string, trial, attempt int) ([]Measurement, error)
	// Heartbeats delivers the workers' heartbeats until ctx ends.
	Heartbeats(ctx context.Context) (<-chan Heartbeat, error)
	// Control sends a message to a worker; it is not stored.
	Control(ctx context.Context, c *Control) error
	// Logs delivers the parts of logs that a worker sends from now on, until ctx ends;
	// where the reader is too slow, the oldest are dropped.
	Logs(ctx context.Context, worker string) (<-chan LogPart, error)
	// Archive puts a message into the dead-letter queue, which has room for
	// whatever a stream has carried; ErrTooLarge where it does not take more.
	Archive(ctx context.Context, subject string, reason string, raw []byte) error
	// Purge forgets a study's messages: assignments first; claims and
	// measurements where all is set (the study is deleted).
	Purge(ctx context.Context, study string, all bool) error
	// Healthy reports whether the broker answers now.
	Healthy(ctx context.Context) error
	Close() error
}

// Reader reads one stream in order. Not safe for concurrent use.
type Reader interface {
	// Next waits for the next entry.
	Next(ctx context.Context) (Entry, error)
	// Cursor is the place after the last entry. Before the first one it is what
	// Read was given or, where that is of another stream, before the stream's
	// first message: how much is left to read is to be told from it.
	Cursor() Cursor
	Close() error
}
