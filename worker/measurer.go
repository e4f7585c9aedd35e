package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// measurementsPerSecond and measurementBurst bound what one attempt sends.
	measurementsPerSecond = 20
	measurementBurst      = 20
	// soleMeasurement is how long the first report waits for a second: a single
	// one that comes with the attempt's end is in its result and needs no
	// message of its own.
	soleMeasurement = 200 * time.Millisecond
	// lastMeasurements bounds the time for what is left at the end.
	lastMeasurements = time.Second
)

// measurer publishes the reports of one attempt while it runs. Where they come
// faster than measurementsPerSecond, older ones that still wait are dropped; the
// last is always sent. Safe for concurrent use.
type measurer struct {
	bus     messaging.Worker
	log     *slog.Logger
	limiter *rate.Limiter
	ctx     context.Context // of publishing
	cancel  context.CancelFunc

	mu      sync.Mutex
	waiting []*messaging.Measurement
	dropped int
	closed  bool
	wake    chan struct{} // has room for one
	running sync.WaitGroup
	started bool
}

// newMeasurer returns a measurer, which must be finished. It publishes until
// then, even where ctx ends.
func newMeasurer(ctx context.Context, bus messaging.Worker, log *slog.Logger) *measurer {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &measurer{
		bus: bus, log: log, limiter: rate.NewLimiter(measurementsPerSecond, measurementBurst),
		ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1),
	}
}

// add queues a measurement; it does not block.
func (m *measurer) add(measurement *messaging.Measurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if len(m.waiting) == measurementBurst {
		m.waiting = append(m.waiting[:0], m.waiting[1:]...)
		m.dropped++
	}
	m.waiting = append(m.waiting, measurement)
	if !m.started {
		m.started = true
		m.running.Go(m.run)
	} else {
		m.signal()
	}
}

func (m *measurer) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run publishes until finish has been called and nothing waits.
func (m *measurer) run() {
	m.pause(soleMeasurement, 2)
	if n, closed := m.state(); n == 1 && closed {
		return
	}
	for {
		next, closed := m.next()
		switch {
		case next != nil:
			m.publish(next)
			if !closed {
				m.pause(m.limiter.Reserve().Delay(), measurementBurst+1)
			}
		case closed:
			return
		default:
			<-m.wake
		}
	}
}

func (m *measurer) state() (waiting int, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting), m.closed
}

func (m *measurer) next() (first *messaging.Measurement, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) > 0 {
		first, m.waiting = m.waiting[0], m.waiting[1:]
	}
	return first, m.closed
}

// pause waits, but not once enough measurements wait or finish was called.
func (m *measurer) pause(delay time.Duration, enough int) {
	if delay <= 0 {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		if n, closed := m.state(); closed || n >= enough {
			return
		}
		select {
		case <-timer.C:
			return
		case <-m.wake:
		}
	}
}

func (m *measurer) publish(measurement *messaging.Measurement) {
	try, cancel := context.WithTimeout(m.ctx, publishTimeout)
	defer cancel()
	if err := m.bus.PublishMeasurement(try, measurement); err != nil {
		m.log.Debug("a measurement was not published", telemetry.LogError, err)
	}
}

// finish sends what waits, for a bounded time, and ends.
func (m *measurer) finish() {
	m.mu.Lock()
	m.closed = true
	dropped := m.dropped
	m.signal()
	m.mu.Unlock()
	timer := time.AfterFunc(lastMeasurements, m.cancel)
	m.running.Wait()
	timer.Stop()
	m.cancel()
	if dropped > 0 {
		m.log.Debug("reports came too fast to publish each", "dropped", dropped)
	}
}
