package worker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// measurementsPerSecond and measurementBurst limit the sending rate of one attempt.
	measurementsPerSecond = 20
	measurementBurst      = 20
	// maxWaiting limits an attempt's queue: some seconds' worth.
	maxWaiting = 100
	// soleMeasurement is how long the first report waits for a second one. A single
	// report at the attempt's end is already in the result and needs no message of its
	// own.
	soleMeasurement = 200 * time.Millisecond
	// lastMeasurements is how long the end of an attempt waits for the rest of the
	// queue.
	lastMeasurements = time.Second
)

// measurer publishes the reports of one attempt in order, and retries each until it is
// acknowledged. If they come faster than they can be sent, it drops every other waiting
// report, but never the last one of a metric. It is safe for concurrent use.
type measurer struct {
	bus     messaging.Worker
	log     *slog.Logger
	limiter *rate.Limiter
	life    context.Context // ends publishing
	group   *sync.WaitGroup // counts the measurers that are still publishing

	mu      sync.Mutex
	waiting []*messaging.Measurement // the first one is being published
	dropped int
	closed  bool
	wake    chan struct{} // has room for one
	done    chan struct{} // closed when nothing is left; nil before the first report
}

// newMeasurer returns a measurer; the caller MUST call finish. It may publish beyond
// the attempt's end, but only until the worker stops.
func newMeasurer(r *run) *measurer {
	return &measurer{
		bus: r.options.Bus, log: r.options.Logger, limiter: rate.NewLimiter(measurementsPerSecond, measurementBurst),
		life: r.measuring, group: &r.measurers, wake: make(chan struct{}, 1),
	}
}

// add queues a measurement; it does not block.
func (m *measurer) add(measurement *messaging.Measurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.waiting = append(m.waiting, measurement)
	if len(m.waiting) > maxWaiting {
		m.thin()
	}
	if m.done == nil {
		m.done = make(chan struct{})
		m.group.Go(m.run)
	} else {
		m.signal()
	}
}

// thin drops every other waiting measurement. It keeps the one that is being published,
// and those that hold the last report of a metric. The caller MUST hold the lock.
func (m *measurer) thin() {
	later := map[string]bool{} // the metrics of the kept measurements, from the last one backwards
	kept, drop := make([]*messaging.Measurement, 0, len(m.waiting)), false
	for i, w := range slices.Backward(m.waiting) {
		needed := i == 0
		for _, metric := range slices.AppendSeq(slices.Clone(w.Diverged), maps.Keys(w.Metrics)) {
			needed = needed || !later[metric]
			later[metric] = true
		}
		if !needed {
			if drop = !drop; drop {
				m.dropped++
				continue
			}
		}
		kept = append(kept, w)
	}
	slices.Reverse(kept)
	m.waiting = kept
}

func (m *measurer) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run publishes until finish was called and the queue is empty, or life ends.
func (m *measurer) run() {
	defer close(m.done)
	m.pause(soleMeasurement, 2)
	if n, closed := m.state(); n == 1 && closed {
		return
	}
	for m.life.Err() == nil {
		next, closed := m.next()
		switch {
		case next != nil:
			if !m.publish(next) {
				return
			}
			if m.sent(); !closed {
				m.pause(m.limiter.Reserve().Delay(), maxWaiting+1)
			}
		case closed:
			return
		default:
			select {
			case <-m.wake:
			case <-m.life.Done():
			}
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
		first = m.waiting[0]
	}
	return first, m.closed
}

// sent removes the first measurement from the queue.
func (m *measurer) sent() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = m.waiting[1:]
}

// pause waits, unless enough measurements are waiting or finish was called.
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
		case <-m.life.Done():
			return
		case <-m.wake:
		}
	}
}

// publish sends a measurement until it is acknowledged. It returns false if nothing can
// be sent any more. A measurement that no bus can carry is dropped.
func (m *measurer) publish(measurement *messaging.Measurement) bool {
	pause := backoff.New(messaging.RetryFirst, messaging.RetryMost)
	for {
		try, cancel := context.WithTimeout(m.life, publishTimeout)
		err := m.bus.PublishMeasurement(try, measurement)
		cancel()
		switch {
		case err == nil:
			return true
		case errors.Is(err, messaging.ErrInvalid), errors.Is(err, messaging.ErrTooLarge):
			m.log.Warn("cannot send a report", telemetry.LogTrial, measurement.Trial, telemetry.LogError, err)
			return true
		case errors.Is(err, messaging.ErrClosed), m.life.Err() != nil:
			return false
		}
		m.log.Debug("report not acknowledged; sending it again", telemetry.LogError, err)
		pause.Wait(m.life)
	}
}

// finish accepts no more measurements, and waits a moment until all are sent. The
// rest are sent while the slot continues with its next trial.
func (m *measurer) finish() {
	m.mu.Lock()
	m.closed = true
	dropped, done := m.dropped, m.done
	m.signal()
	m.mu.Unlock()
	if dropped > 0 {
		m.log.Debug("dropped reports that came too fast to send", "dropped", dropped)
	}
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(lastMeasurements):
	}
}
