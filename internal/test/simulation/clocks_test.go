package simulation

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// clock is a worker's clock: how far it is off, now and before its last step. All processes
// share the virtual time, so only what a worker sends shows it. It is safe for concurrent use.
type clock struct{ now, before atomic.Int64 }

// step sets how far the clock is off.
func (c *clock) step(off time.Duration) { c.before.Store(c.now.Swap(int64(off))) }

func (c *clock) shown(t time.Time) time.Time  { return shift(t, &c.now) }
func (c *clock) showed(t time.Time) time.Time { return shift(t, &c.before) }

func shift(t time.Time, off *atomic.Int64) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Duration(off.Load()))
}

// skewed is the bus of a worker with such a clock. An evaluation began before the clock's
// last step, so it may seem to have ended before it began, or to have taken a year.
type skewed struct {
	messaging.Worker
	clock *clock
}

// Claim implements messaging.Worker.
func (s skewed) Claim(ctx context.Context, id string, c *messaging.Claim) error {
	sent := *c
	sent.At = s.clock.shown(c.At)
	return s.Worker.Claim(ctx, id, &sent)
}

// PublishResult implements messaging.Worker.
func (s skewed) PublishResult(ctx context.Context, r *messaging.Result) error {
	sent := *r
	sent.Claimed, sent.Started, sent.Ended = s.clock.showed(r.Claimed), s.clock.showed(r.Started), s.clock.shown(r.Ended)
	return s.Worker.PublishResult(ctx, &sent)
}

// PublishMeasurement implements messaging.Worker.
func (s skewed) PublishMeasurement(ctx context.Context, m *messaging.Measurement) error {
	sent := *m
	sent.At = s.clock.shown(m.At)
	return s.Worker.PublishMeasurement(ctx, &sent)
}

// Heartbeat implements messaging.Worker.
func (s skewed) Heartbeat(ctx context.Context, h *messaging.Heartbeat) error {
	sent := *h
	sent.At = s.clock.shown(h.At)
	return s.Worker.Heartbeat(ctx, &sent)
}
