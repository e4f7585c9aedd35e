package messaging

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrClaimed means that another claim of the attempt came first.
	ErrClaimed = errors.New("the attempt is already claimed")
	// ErrFenced means that a newer leader has taken over the shard; the caller must
	// step down.
	ErrFenced = errors.New("a newer leader has fenced this one")
	// ErrClosed means that the bus was closed.
	ErrClosed = errors.New("the bus is closed")
)

// Fenced is the ErrFenced of Fence.
type Fenced struct {
	// Stored is the epoch that holds the shard, Own the lower one that was refused.
	Stored, Own int64
}

// Error names both epochs.
func (f *Fenced) Error() string {
	return fmt.Sprintf("%v: epoch %d, own %d", ErrFenced, f.Stored, f.Own)
}

// Is makes a Fenced an ErrFenced.
func (f *Fenced) Is(target error) bool { return target == ErrFenced }

// Worker is the part of a bus that a worker uses. Its methods are safe for concurrent
// use and return when their context ends.
type Worker interface {
	// Fetch waits for one assignment of the worker's pool.
	Fetch(ctx context.Context) (Delivery, error)
	// Claim takes an attempt, or returns ErrClaimed if another claim came first. id
	// MUST be new for each fetched delivery and the same for retries of one claim, so
	// that a retry succeeds if the first try was stored.
	Claim(ctx context.Context, id string, c *Claim) error
	// PublishResult stores a result. Sending it again replaces it and makes the leader
	// read it again.
	PublishResult(ctx context.Context, r *Result) error
	// PublishMeasurement stores a report. Reports of one attempt are read in the
	// order in which they were stored: publish the next one once the one before is.
	PublishMeasurement(ctx context.Context, m *Measurement) error
	// Heartbeat sends a heartbeat without waiting for an acknowledgement.
	Heartbeat(ctx context.Context, h *Heartbeat) error
	// Controls delivers the leader's messages to this worker until ctx ends. Messages
	// sent while nobody listens are lost, so senders repeat them.
	Controls(ctx context.Context) (<-chan Control, error)
	// SendLog answers a request for a part of a log. The answer is not stored, and
	// SendLog waits for no acknowledgement.
	SendLog(ctx context.Context, p *LogPart) error
	Close() error
}

// Delivery is one fetched assignment.
type Delivery interface {
	// Assignment returns the assignment; it is valid if Err is nil.
	Assignment() *Assignment
	// Err returns the error if the message cannot be decoded. It is then a poison
	// message, and the caller must call Term.
	Err() error
	// Ack removes the assignment from the queue, without waiting for a confirmation. If
	// it is lost, the assignment is delivered again, and the claim prevents a second run.
	Ack(ctx context.Context) error
	// Nak returns the assignment to the queue, to be delivered again after the delay.
	Nak(ctx context.Context, delay time.Duration) error
	// Term moves a message that cannot be read to the dead-letter queue.
	Term(ctx context.Context, reason string) error
}

// Stream names a stream that the leader reads from a cursor.
type Stream string

// The streams that the leader reads in order.
const (
	StreamClaim  Stream = "CLAIM"
	StreamResult Stream = "RESULT"
	StreamMetric Stream = "METRIC"
)

// Cursor is a position in a stream: everything up to and including Sequence is
// committed to the ledger. The zero Cursor is before the first message.
type Cursor struct {
	// Created is the stream's creation time. A stream that was deleted and created
	// again has another one, and is read from its first message.
	Created time.Time `json:"created"`
	// Sequence and Timestamp are those of the last message read. A message at
	// Sequence with another timestamp means that the store went back in time.
	Sequence  uint64    `json:"sequence"`
	Timestamp time.Time `json:"timestamp"`
}

// Entry is one message of a stream that the leader reads. Exactly one of Claim,
// Result, Measurement and Err is set.
type Entry struct {
	Stream Stream
	// Cursor is the position after this entry. Commit it together with the entry's
	// effects.
	Cursor Cursor
	Claim  *Claim
	Result *Result
	// Measurement may be one that was read before, or come after a later one: its
	// sender repeats what was not acknowledged.
	Measurement *Measurement
	// Raw and Subject are the message as it arrived, for the dead-letter queue.
	Raw     []byte
	Subject string
	// Err is the error if the message cannot be decoded. ID and Worker are then taken
	// from the subject, without a nonce.
	Err    error
	ID     AttemptID
	Worker string
}

// NewEntry returns the entry of a message, which decode reads into an envelope.
func NewEntry(s Stream, after Cursor, subject string, raw []byte, decode func(Envelope) error) Entry {
	e := Entry{Stream: s, Cursor: after, Raw: raw, Subject: subject}
	c, r, m := &Claim{}, &Result{}, &Measurement{}
	switch s {
	case StreamClaim:
		if e.Err = decode(c); e.Err == nil {
			e.Claim = c
		}
	case StreamResult:
		if e.Err = decode(r); e.Err == nil {
			e.Result = r
		}
	case StreamMetric:
		if e.Err = decode(m); e.Err == nil {
			e.Measurement = m
		}
	}
	if e.Err != nil {
		if s, err := ParseSubject(subject); err == nil {
			e.ID, e.Worker = s.ID, s.Worker
		}
	}
	return e
}

// Leader is the part of a bus that a shard's leader uses. Its methods are safe for
// concurrent use and return when their context ends.
type Leader interface {
	// Setup creates or updates the streams and the pools' consumers. It can be
	// repeated.
	Setup(ctx context.Context, pools []string) error
	// Fence takes over the shard for epoch: from now on, every publish of an older
	// leader fails. It returns ErrFenced, as a *Fenced, if a newer epoch holds the shard.
	Fence(ctx context.Context, epoch int64) error
	// Assign publishes assignments. It returns ErrFenced after a newer Fence, and none
	// is stored then. After another error, some may have been stored; publishing them
	// again is safe.
	Assign(ctx context.Context, as []*Assignment) error
	// Withdraw claims a queued attempt for the leader itself, so that no worker can. It
	// returns ErrClaimed if a worker came first.
	Withdraw(ctx context.Context, a *Assignment) error
	// Last returns the sequence of the stream's last message, or 0 if it is empty.
	Last(ctx context.Context, s Stream) (uint64, error)
	// Read delivers the entries after the cursor, in order, until ctx ends or the
	// reader is broken. If the cursor was taken from another stream, it starts at the
	// first message. Within its check interval it notices that the stream was deleted
	// and created again.
	Read(ctx context.Context, s Stream, from Cursor) (Reader, error)
	// Heartbeats delivers the workers' heartbeats until ctx ends.
	Heartbeats(ctx context.Context) (<-chan Heartbeat, error)
	// Control sends a message to a worker; it is not stored.
	Control(ctx context.Context, c *Control) error
	// Logs delivers the log parts that a worker sends from now on until ctx ends. If the
	// reader is too slow, the oldest are dropped.
	Logs(ctx context.Context, worker string) (<-chan LogPart, error)
	// Bury adds a message to the dead-letter queue, which has room for every message
	// that a stream can carry. It returns ErrTooLarge for a larger one.
	Bury(ctx context.Context, subject string, reason string, raw []byte) error
	// Purge deletes a study's messages: assignments first, and with all (the study is
	// deleted) also claims, results and measurements.
	Purge(ctx context.Context, study string, all bool) error
	// Trim deletes the messages of a study or, if study is empty, of the whole shard whose
	// sequences are below a number and below the cursor's. The cursor MUST be committed;
	// nothing is deleted of a stream that is not the cursor's. To delete a claim lets the
	// attempt be claimed again, so its assignment MUST be gone from the queue, and from
	// the hands of workers, BEFORE.
	Trim(ctx context.Context, s Stream, study string, committed Cursor, below uint64) error
	// Waiting returns the attempts of a study whose assignments are in the queue, without
	// their nonces.
	Waiting(ctx context.Context, study string) ([]AttemptID, error)
	// Retract deletes the assignments of attempts from the queue. A worker that has
	// fetched one still has it.
	Retract(ctx context.Context, ids []AttemptID) error
	// FirstClaim returns the lowest sequence of the claims of attempts; 0 if there is
	// none.
	FirstClaim(ctx context.Context, ids []AttemptID) (uint64, error)
	// KeepPools deletes the consumers of all pools but these, and those that were set up
	// in the last minute. Their workers wait until the pools are set up again.
	KeepPools(ctx context.Context, pools []string) error
	// Healthy returns an error unless the broker answers now.
	Healthy(ctx context.Context) error
	Close() error
}

// Reader reads one stream in order. Not safe for concurrent use.
type Reader interface {
	// Next waits for the next entry.
	Next(ctx context.Context) (Entry, error)
	// Cursor returns the position after the last entry. Before the first entry it is
	// the cursor passed to Read or, if that belongs to another stream, the position
	// before the stream's first message. It tells how much is left to read.
	Cursor() Cursor
	Close() error
}
