// Package natsbus carries the messages over NATS JetStream: assignments in a work
// queue, claims in a stream that refuses a second message on a subject, results
// in one that replaces it, measurements and dead letters in streams with limits,
// heartbeats and controls over core NATS.
//
// Only a leader creates streams and consumers; workers bind to what exists, and
// wait where it does not exist yet. Connections belong to the caller, who should
// open them with ConnectOptions; closing a bus leaves its connection open.
package natsbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// defaultTimeout limits one request to the broker if the caller's context does not
// limit it further.
const defaultTimeout = 5 * time.Second

// queueLength is the number of messages that may wait in a subscription that is read one by
// one. The client library allocates the queue at once, for 65,536 messages unless told
// otherwise, which is half a megabyte for each pull. A pull is answered with one message
// and a heartbeat every 5 s of its 30 s.
const queueLength = 64

// ConnectOptions returns the options for a bus's connection. It keeps reconnecting
// forever, notices a dead peer within 10 s, and never replays what was published while
// disconnected: an old leader's messages must not arrive late. name must be a valid
// token, unique to the process. Replies come to an inbox of its own, so nobody sees
// another's assignments.
func ConnectOptions(name string) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.CustomInboxPrefix("_INBOX_" + messaging.Token(name)),
		nats.ReconnectBufSize(-1),
		nats.SyncQueueLen(queueLength),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.Timeout(defaultTimeout),
	}
}

// WorkerConnectOptions returns ConnectOptions for a worker of a pool. Its inbox is a
// subject of its pool and name, which Accounts lets nobody else read.
func WorkerConnectOptions(pool, name string) []nats.Option {
	if own, ok := strings.CutPrefix(name, pool+"."); ok {
		name = own
	}
	return append(ConnectOptions(name), nats.CustomInboxPrefix("_INBOX."+messaging.Token(pool)+"."+messaging.Token(name)))
}

// client is the common part of a leader and a worker: a JetStream context and a
// lifetime.
type client struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	shard   string
	timeout time.Duration
	log     *slog.Logger

	// life ends, with the cause ErrClosed, when the bus is closed.
	life context.Context
	end  context.CancelCauseFunc

	mu     sync.Mutex // guards closed against wg.Go
	closed bool
	wg     sync.WaitGroup
}

func newClient(nc *nats.Conn, shard string, timeout time.Duration, log *slog.Logger) (*client, error) {
	shard = cmp.Or(shard, messaging.Shard)
	if !messaging.ValidToken(shard) {
		return nil, fmt.Errorf("shard %q: not a valid token", shard)
	}
	timeout = cmp.Or(timeout, defaultTimeout)
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(timeout))
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	c := &client{nc: nc, js: js, shard: shard, timeout: timeout, log: log}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c, nil
}

// Close ends every call and waits for the bus's goroutines. It can be repeated.
func (c *client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end(messaging.ErrClosed)
	c.wg.Wait()
	return nil
}

// spawn runs f in a goroutine for which Close waits. It returns ErrClosed after Close.
func (c *client) spawn(f func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return messaging.ErrClosed
	}
	c.wg.Go(f)
	return nil
}

// during derives a context that also ends when the bus is closed. For a closed bus it
// has already ended, as AfterFunc would let a quick call succeed.
func (c *client) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.life.Err() != nil {
		cancel(messaging.ErrClosed)
	}
	stop := context.AfterFunc(c.life, func() { cancel(messaging.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// request derives the context of one request to the broker.
func (c *client) request(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, release := c.during(ctx)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	return ctx, func() {
		cancel()
		release()
	}
}

// explain replaces the error of a call by ErrClosed if the bus or its connection is
// closed.
func (c *client) explain(err error) error {
	if err == nil || errors.Is(err, messaging.ErrClosed) {
		return err
	}
	if c.life.Err() != nil || errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("%w: %w", messaging.ErrClosed, err)
	}
	if hasCode(err, codeTooLarge) || errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("%w: %w", messaging.ErrTooLarge, err)
	}
	return err
}

// store publishes a message and waits until its stream has stored it.
func (c *client) store(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := c.request(ctx)
	defer cancel()
	if c.life.Err() != nil {
		return nil, messaging.ErrClosed
	}
	ack, err := c.js.PublishMsg(ctx, m)
	if err != nil {
		return nil, c.explain(fmt.Errorf("publish %s: %w", m.Subject, err))
	}
	return ack, nil
}

// send publishes a message over core NATS, without an acknowledgement.
func (c *client) send(ctx context.Context, m *nats.Msg) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.life.Err() != nil {
		return messaging.ErrClosed
	}
	if err := c.nc.PublishMsg(m); err != nil {
		return c.explain(fmt.Errorf("publish %s: %w", m.Subject, err))
	}
	return nil
}

// message encodes an envelope, with its trace context in the headers.
func (c *client) message(e messaging.Envelope) (*nats.Msg, error) {
	data, err := messaging.Encode(e)
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{Subject: e.Subject(c.shard), Data: data, Header: nats.Header{}}
	if t, ok := e.(traced); ok {
		trace := t.Trace().Sane()
		if trace.Traceparent != "" {
			m.Header.Set(messaging.HeaderTraceparent, trace.Traceparent)
		}
		if trace.Tracestate != "" {
			m.Header.Set(messaging.HeaderTracestate, trace.Tracestate)
		}
	}
	return m, nil
}

// decode decodes a message, with its trace context from the headers.
func decode(subject string, header nats.Header, data []byte, e messaging.Envelope) error {
	if err := messaging.DecodeFrom(subject, data, e); err != nil {
		return err
	}
	if t, ok := e.(traced); ok {
		*t.Trace() = messaging.TraceContext{
			Traceparent: header.Get(messaging.HeaderTraceparent),
			Tracestate:  header.Get(messaging.HeaderTracestate),
		}.Sane()
	}
	return nil
}

type traced interface {
	Trace() *messaging.TraceContext
}

// Error codes of the server that a bus handles (server/errors.json of nats-server).
const (
	codeTooLarge        jetstream.ErrorCode = 10054 // the message is larger than the stream takes
	codeWrongSequence   jetstream.ErrorCode = 10071 // the expected sequence is not the last one
	codeStoreFailed     jetstream.ErrorCode = 10077 // among other reasons: a second message on a subject
	codeSequenceBusy    jetstream.ErrorCode = 10164 // another message with an expectation is in flight
	codeBatchIncomplete jetstream.ErrorCode = 10176 // the batch lost a message, or its leader
	codeBatchTooMany    jetstream.ErrorCode = 10210 // too many batches in flight
)

// second is the server's text for a subject that already has its one message; the code
// alone also means a full disk.
const second = "maximum messages per subject exceeded"

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// isSecond reports whether a message was refused because its subject already has one.
func isSecond(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, second)
}
