package worker

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// metrics are the worker's instruments.
type metrics struct {
	attempts     metric.Int64Counter
	registration metric.Registration
}

func newMetrics(o Options, r *run) (*metrics, error) {
	attempts, err := o.Meter.Int64Counter(telemetry.MetricWorkerAttempts,
		metric.WithDescription("Attempts that ended on this worker, by outcome"))
	if err != nil {
		return nil, fmt.Errorf("make a counter: %w", err)
	}
	running, err := o.Meter.Int64ObservableGauge(telemetry.MetricWorkerRunning,
		metric.WithDescription("Attempts that this worker runs now"))
	if err != nil {
		return nil, fmt.Errorf("make a gauge: %w", err)
	}
	spooled, err := o.Meter.Int64ObservableGauge(telemetry.MetricWorkerSpool,
		metric.WithDescription("Results that wait for the leader's receipt"))
	if err != nil {
		return nil, fmt.Errorf("make a gauge: %w", err)
	}
	slots, err := o.Meter.Int64ObservableGauge(telemetry.MetricWorkerSlots,
		metric.WithDescription("Attempts that this worker can run at once"))
	if err != nil {
		return nil, fmt.Errorf("make a gauge: %w", err)
	}
	busy, err := o.Meter.Float64ObservableCounter(telemetry.MetricWorkerBusy, metric.WithUnit("s"),
		metric.WithDescription("Time that slots spent on attempts, summed over the slots"))
	if err != nil {
		return nil, fmt.Errorf("make a counter: %w", err)
	}
	registration, err := o.Meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		observer.ObserveInt64(running, int64(r.registry.count()))
		observer.ObserveInt64(spooled, int64(r.sender.len()))
		observer.ObserveInt64(slots, int64(o.Slots))
		observer.ObserveFloat64(busy, r.registry.busy().Seconds())
		return nil
	}, running, spooled, slots, busy)
	if err != nil {
		return nil, fmt.Errorf("observe the worker: %w", err)
	}
	return &metrics{attempts: attempts, registration: registration}, nil
}

func (m *metrics) ended(ctx context.Context, o messaging.Outcome) {
	m.attempts.Add(ctx, 1, metric.WithAttributes(outcomeAttribute(o)))
}

func (m *metrics) close() { _ = m.registration.Unregister() } // there is nothing to do about an error
