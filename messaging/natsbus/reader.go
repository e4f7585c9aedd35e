package natsbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
)

const (
	// readAhead is the number of messages that a reader requests in advance.
	readAhead = 256
	// readHeartbeat is the interval of the server's heartbeats while a stream is
	// silent. A reader that hears nothing for twice as long starts over. The client
	// library accepts no shorter interval.
	readHeartbeat = 500 * time.Millisecond
	// readExpiry is the time for which the server holds one of the reader's requests.
	readExpiry = 30 * time.Second
	// readerIdle is the time after which the server forgets an idle reader.
	readerIdle = time.Minute
)

// reader reads a stream in order through consumers that it discards on any
// irregularity; only the cursor records its position. Before it trusts a consumer, it
// checks that the stream is the one from which the cursor was taken. (The client
// library's ordered consumer does not: in a recreated stream it continues from the old
// sequence and skips what comes before.)
type reader struct {
	l      *Leader
	name   string
	filter string
	stream messaging.Stream
	life   context.Context // of the Read that made it
	end    context.CancelFunc

	cursor messaging.Cursor
	seen   uint64 // the highest last sequence that the stream was seen with
	check  time.Time

	consumer jetstream.Consumer
	messages jetstream.MessagesContext
	position uint64 // the consumer's own sequence, which has no gaps
	checked  uint64 // the position at the last check
}

// Read implements messaging.Leader.
func (l *Leader) Read(ctx context.Context, s messaging.Stream, from messaging.Cursor) (messaging.Reader, error) {
	of, err := readStreamOf(s)
	if err != nil {
		return nil, err
	}
	life, end := l.during(ctx)
	r := &reader{l: l, name: of.name, filter: messaging.Filter(of.kind, l.shard), stream: s, life: life, end: end, cursor: from,
		seen: from.Sequence}
	if err := r.open(life); err != nil {
		end()
		return nil, l.explain(fmt.Errorf("read %s: %w", of.name, err))
	}
	return r, nil
}

// Cursor implements messaging.Reader.
func (r *reader) Cursor() messaging.Cursor { return r.cursor }

// Close implements messaging.Reader.
func (r *reader) Close() error {
	r.end()
	r.drop()
	return nil
}

// Next implements messaging.Reader. It survives faults of the broker and fails only if
// a context ends or the bus is closed.
func (r *reader) Next(ctx context.Context) (messaging.Entry, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	defer context.AfterFunc(r.life, func() { cancel(context.Cause(r.life)) })()
	pause := backoff.New(messaging.RetryFirst, messaging.RetryMost)
	for {
		entry, ok, err := r.step(ctx)
		if ctx.Err() != nil && !ok {
			r.forget()
			return messaging.Entry{}, r.l.explain(context.Cause(ctx))
		}
		if ok {
			return entry, nil
		}
		if err == nil {
			continue
		}
		r.l.log.Debug("reading again", "stream", r.name, "error", err)
		r.drop()
		if !pause.Wait(ctx) {
			return messaging.Entry{}, r.l.explain(context.Cause(ctx))
		}
	}
}

// forget drops the consumer if the reader has ended.
func (r *reader) forget() {
	if r.life.Err() != nil {
		r.drop()
	}
}

// step waits for one entry, until the next check is due. After an error the consumer
// must be discarded.
func (r *reader) step(ctx context.Context) (entry messaging.Entry, ok bool, err error) {
	if r.messages == nil {
		if err := r.open(ctx); err != nil {
			return entry, false, err
		}
	}
	if !time.Now().Before(r.check) {
		if err := r.verify(ctx); err != nil {
			return entry, false, err
		}
	}
	wait, cancel := context.WithDeadline(ctx, r.check)
	defer cancel()
	m, err := r.messages.Next(jetstream.NextContext(wait))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return entry, false, nil // a check is due
		}
		return entry, false, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return entry, false, fmt.Errorf("message without metadata: %w", err)
	}
	if meta.Sequence.Consumer != r.position+1 {
		return entry, false, fmt.Errorf("gap: message %d after %d", meta.Sequence.Consumer, r.position)
	}
	r.position++
	r.cursor.Sequence, r.cursor.Timestamp = meta.Sequence.Stream, meta.Timestamp.UTC()
	r.seen = max(r.seen, meta.Sequence.Stream)
	entry = messaging.NewEntry(r.stream, r.cursor, m.Subject(), m.Data(), func(e messaging.Envelope) error {
		return decode(m.Subject(), m.Headers(), m.Data(), e)
	})
	return entry, true, nil
}

// open creates a consumer that continues after the cursor, or from the first message if
// the cursor belongs to another stream.
func (r *reader) open(ctx context.Context) error {
	before, err := r.identify(ctx)
	if err != nil {
		return err
	}
	consumer, err := r.consume(ctx)
	if err != nil {
		return err
	}
	// The stream could have been recreated between the check and the creation of the
	// consumer. If the stream is the same before and after, the consumer reads it.
	after, err := r.info(ctx)
	if err != nil {
		return err
	}
	if !after.Created.Equal(before.Created) {
		return errors.New("the stream was recreated in the meantime")
	}
	messages, err := consumer.Messages(
		jetstream.PullMaxMessages(readAhead),
		jetstream.PullExpiry(readExpiry),
		jetstream.PullHeartbeat(readHeartbeat),
		jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return err
	}
	r.consumer, r.messages, r.position, r.checked = consumer, messages, 0, 0
	r.check = time.Now().Add(r.l.opts.CheckInterval)
	return nil
}

func (r *reader) consume(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.l.timeout)
	defer cancel()
	return r.l.js.CreateConsumer(ctx, r.name, jetstream.ConsumerConfig{
		FilterSubject:     r.filter,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       r.cursor.Sequence + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: readerIdle,
	})
}

// verify checks that the stream and the consumer are unchanged.
func (r *reader) verify(ctx context.Context) error {
	created, sequence := r.cursor.Created, r.cursor.Sequence
	if _, err := r.identify(ctx); err != nil {
		return err
	}
	if !r.cursor.Created.Equal(created) || r.cursor.Sequence != sequence {
		return errors.New("the stream was replaced")
	}
	ctx, cancel := context.WithTimeout(ctx, r.l.timeout)
	defer cancel()
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return err
	}
	// In a cluster, a request can be lost if a server does not know the consumer yet;
	// the client library would wait forever.
	if info.NumWaiting == 0 && r.position == r.checked {
		return errors.New("the server holds no request of the reader")
	}
	r.checked = r.position
	r.check = time.Now().Add(r.l.opts.CheckInterval)
	return nil
}

// identify compares the stream with the cursor, and moves a cursor of another stream
// before the first message.
func (r *reader) identify(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, r.l.timeout)
	defer cancel()
	s, err := r.l.js.Stream(ctx, r.name)
	if err != nil {
		return nil, err
	}
	info := s.CachedInfo()
	fresh := r.cursor == messaging.Cursor{}
	same := fresh || r.cursor.Created.Equal(info.Created) && info.State.LastSeq >= r.seen
	if same && r.cursor.Sequence > 0 {
		raw, err := s.GetMsg(ctx, r.cursor.Sequence)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			// The message was replaced by a newer one, or purged: there is nothing to
			// compare.
		case err != nil:
			return nil, err
		default:
			same = raw.Time.Equal(r.cursor.Timestamp)
		}
	}
	if !same {
		r.l.log.Warn("the stream was replaced: reading it from its first message",
			"stream", r.name, "sequence", r.cursor.Sequence)
	}
	if fresh || !same {
		r.cursor = messaging.Cursor{Created: info.Created.UTC()}
		r.seen = 0
	}
	r.seen = max(r.seen, info.State.LastSeq)
	return info, nil
}

func (r *reader) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, r.l.timeout)
	defer cancel()
	s, err := r.l.js.Stream(ctx, r.name)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// drop abandons the consumer; the server deletes it when it has been idle.
func (r *reader) drop() {
	if r.messages != nil {
		r.messages.Stop()
	}
	r.consumer, r.messages = nil, nil
}
