package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// The headers of an atomic batch (NATS ADR-50).
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// Fence implements messaging.Leader.
func (l *Leader) Fence(ctx context.Context, epoch int64) error {
	if epoch < 1 {
		return fmt.Errorf("epoch %d: must be at least 1", epoch)
	}
	return l.fenced(ctx, func(ctx context.Context) error { return l.raise(ctx, epoch) })
}

// fenced waits for its turn to publish under the fence, and calls f.
func (l *Leader) fenced(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := l.during(ctx)
	defer cancel()
	select {
	case <-l.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { l.turn <- struct{}{} }()
	return l.explain(f(ctx))
}

// newContention returns the pauses of conflicts with another message in flight: a new
// leader's fence must get in between an old leader's batches.
func newContention() *backoff.Backoff { return backoff.New(time.Millisecond, 30*time.Millisecond) }

// raise writes the epoch into the fence's message, by compare-and-set. An epoch belongs
// to one leader, so a fence that already holds it is this leader's own.
func (l *Leader) raise(ctx context.Context, epoch int64) error {
	pause := newContention()
	subject := messaging.Subject{Kind: messaging.KindFence, Shard: l.shard}.String()
	for {
		sequence, stored, err := l.readFence(ctx)
		if err != nil {
			return err
		}
		if stored > epoch {
			return &messaging.Fenced{Stored: stored, Own: epoch}
		}
		if stored == epoch {
			l.epoch, l.fence = epoch, sequence
			return nil
		}
		m := nats.NewMsg(subject)
		m.Data = strconv.AppendInt(nil, epoch, 10)
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(sequence, 10))
		ack, err := l.store(ctx, m)
		if err == nil {
			l.epoch, l.fence = epoch, ack.Sequence
			return nil
		}
		if !hasCode(err, codeWrongSequence, codeSequenceBusy) {
			return err
		}
		if !pause.Wait(ctx) {
			return context.Cause(ctx)
		}
	}
}

// readFence returns the sequence and the epoch of the fence's message, both 0 if there
// is none.
func (l *Leader) readFence(ctx context.Context) (sequence uint64, epoch int64, err error) {
	raw, err := l.last(ctx, streamAssign, messaging.Filter(messaging.KindFence, l.shard))
	if err != nil || raw == nil {
		return 0, 0, err
	}
	epoch, err = strconv.ParseInt(string(raw.Data), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("fence of shard %s: %w", l.shard, err)
	}
	return raw.Sequence, epoch, nil
}

// MaxAssign is the largest number of assignments in one Assign: the server's limit of
// an atomic batch.
const MaxAssign = 1000

// Assign implements messaging.Leader. It needs a Fence first and takes at most
// MaxAssign assignments. If the stream was wiped, and the fence with it, it raises the
// fence again and continues. After an error some may have been published; publishing
// them again is safe.
func (l *Leader) Assign(ctx context.Context, as []*messaging.Assignment) error {
	if len(as) == 0 {
		return nil
	}
	if len(as) > MaxAssign {
		return fmt.Errorf("%d assignments: at most %d at once", len(as), MaxAssign)
	}
	msgs := make([]*nats.Msg, len(as))
	for i, a := range as {
		m, err := l.message(a)
		if err != nil {
			return err
		}
		msgs[i] = m
	}
	return l.fenced(ctx, func(ctx context.Context) error { return l.assign(ctx, msgs) })
}

// assign publishes under the fence. For the time of one request, it retries what the
// server refuses for a temporary reason.
func (l *Leader) assign(ctx context.Context, msgs []*nats.Msg) error {
	if l.epoch == 0 {
		return errors.New("assign: call Fence first")
	}
	ctx, cancel := l.request(ctx)
	defer cancel()
	pause := newContention()
	for {
		err := l.publish(ctx, msgs)
		switch {
		case err == nil:
			return nil
		case hasCode(err, codeWrongSequence):
			// The cause is a newer leader or a recreated stream; the fence tells which.
			if err := l.raise(ctx, l.epoch); err != nil {
				return err
			}
		case hasCode(err, codeSequenceBusy, codeBatchIncomplete, codeBatchTooMany):
		case errors.Is(err, jetstream.ErrNoStreamResponse):
			if err := l.repair(ctx); err != nil {
				return err
			}
		default:
			return err
		}
		if !pause.Wait(ctx) {
			return fmt.Errorf("assign: gave up: %w", err)
		}
	}
}

// publish publishes the messages. Each expects the fence as this leader left it, so
// that none is stored after a newer leader's fence.
func (l *Leader) publish(ctx context.Context, msgs []*nats.Msg) error {
	fence := messaging.Filter(messaging.KindFence, l.shard)
	expected := strconv.FormatUint(l.fence, 10)
	for _, m := range msgs {
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, expected)
		m.Header.Set(jetstream.ExpectedLastSubjSeqSubjHeader, fence)
	}
	switch {
	case len(msgs) == 1:
		_, err := l.store(ctx, msgs[0])
		return err
	case l.opts.Replicas > 1:
		return l.publishBatch(ctx, msgs)
	default:
		return l.publishAtOnce(ctx, msgs)
	}
}

// publishAtOnce publishes the messages without waiting for one before it sends the next,
// and then waits until each is stored or refused. It needs a stream without replicas: that
// handles one message after the other. With replicas, two messages in flight with the same
// expectation would refuse each other, and an atomic batch is one round of replication.
// Without, a batch costs the server a directory of files (BenchmarkAssign).
func (l *Leader) publishAtOnce(ctx context.Context, msgs []*nats.Msg) (err error) {
	answers := make(chan *nats.Msg, len(msgs))
	sub, err := l.nc.ChanSubscribe(l.nc.NewInbox(), answers)
	if err != nil {
		return l.explain(fmt.Errorf("publish %d messages: %w", len(msgs), err))
	}
	defer func() { err = errors.Join(err, ignoreClosed(sub.Unsubscribe())) }()
	for _, m := range msgs {
		if err := l.send(ctx, &nats.Msg{Subject: m.Subject, Reply: sub.Subject, Header: m.Header, Data: m.Data}); err != nil {
			return err
		}
	}
	var refused error
	for range msgs {
		select {
		case answer := <-answers:
			if err := refusal(answer); err != nil && refused == nil {
				refused = fmt.Errorf("publish %d messages: %w", len(msgs), err)
			}
		case <-ctx.Done():
			return fmt.Errorf("publish %d messages: %w", len(msgs), context.Cause(ctx))
		}
	}
	return refused
}

// refusal returns the error in a stream's answer to a message; nil if it is stored.
func refusal(answer *nats.Msg) error {
	if status, _ := statusOf(answer); status == statusNoResponders {
		return jetstream.ErrNoStreamResponse
	}
	var stored struct {
		Stream string              `json:"stream"`
		Error  *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(answer.Data, &stored); {
	case err != nil:
		return fmt.Errorf("%w: %w", jetstream.ErrInvalidJSAck, err)
	case stored.Error != nil:
		return stored.Error
	case stored.Stream == "":
		return jetstream.ErrInvalidJSAck
	}
	return nil
}

// publishBatch publishes the messages as one, all or none.
func (l *Leader) publishBatch(ctx context.Context, msgs []*nats.Msg) error {
	id, last := nuid.Next(), len(msgs)-1
	for i, m := range msgs {
		m.Header.Set(headerBatchID, id)
		m.Header.Set(headerBatchSequence, strconv.Itoa(i+1))
	}
	msgs[last].Header.Set(headerBatchCommit, "1")
	// Only the commit is answered; it fails if any earlier message was lost.
	for _, m := range msgs[:last] {
		if err := l.send(ctx, m); err != nil {
			return err
		}
	}
	_, err := l.store(ctx, msgs[last])
	return err
}
