package coordinator

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/publish"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics are the coordinator's instruments. Safe for concurrent use.
type metrics struct {
	queueWait, evaluation, overhead, suggest, commit metric.Float64Histogram
	staleness                                        metric.Int64Histogram
	trials, takeovers, results, republished          metric.Int64Counter
	attempts, suggestErrors, buryRefused             metric.Int64Counter
	// gauges are the loop's last ones; they are read when the metrics are collected.
	gauges atomic.Pointer[gauges]
	aside  atomic.Int64 // messages that are set aside
}

// instruments creates instruments and collects the errors.
type instruments struct {
	meter metric.Meter
	err   error
}

// seconds are histogram buckets for durations from a hundredth of a millisecond to a
// day.
var seconds = metric.WithExplicitBucketBoundaries(1e-5, 1e-4, 1e-3, .005, .01, .05, .1, .5, 1, 5, 10, 60, 300, 1800, 3600, 14400, 86400)

func (i *instruments) duration(name, description string) metric.Float64Histogram {
	h, err := i.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), seconds)
	i.err = errors.Join(i.err, err)
	return h
}

func (i *instruments) counter(name, description string) metric.Int64Counter {
	c, err := i.meter.Int64Counter(name, metric.WithDescription(description))
	i.err = errors.Join(i.err, err)
	return c
}

func (i *instruments) gauge(name, description string, read func(context.Context, metric.Int64Observer)) {
	_, err := i.meter.Int64ObservableGauge(name, metric.WithDescription(description),
		metric.WithInt64Callback(func(ctx context.Context, o metric.Int64Observer) error {
			read(ctx, o)
			return nil
		}))
	i.err = errors.Join(i.err, err)
}

func newMetrics(meter metric.Meter, c *Coordinator) (*metrics, error) {
	i := &instruments{meter: meter}
	m := &metrics{
		queueWait:  i.duration(telemetry.MetricQueueWait, "From a trial's creation to its claim."),
		evaluation: i.duration(telemetry.MetricEvaluation, "From the start of an evaluation to its end."),
		overhead:   i.duration(telemetry.MetricOverhead, "Time that a trial took outside its evaluation."),
		suggest:    i.duration(telemetry.MetricSuggest, "Time that the optimiser took to answer a request."),
		commit:     i.duration(telemetry.MetricCommit, "A group commit to etcd."),
		trials:     i.counter(telemetry.MetricTrials, "Ended trials by state."),
		takeovers:  i.counter(telemetry.MetricTakeovers, "Terms that this replica has begun."),
		results:    i.counter(telemetry.MetricResults, "Results that were read, by disposition."),
		republished: i.counter(telemetry.MetricRepublished,
			"Assignments that were published again because no worker had claimed them."),
		attempts:      i.counter(telemetry.MetricAttempts, "Attempts of ended trials, by state and reason of failure."),
		buryRefused:   i.counter(telemetry.MetricRefused, "Messages that the dead-letter queue refused."),
		suggestErrors: i.counter(telemetry.MetricSuggestErrors, "Requests to the optimiser that failed."),
	}
	var err error
	m.staleness, err = meter.Int64Histogram(telemetry.MetricStaleness,
		metric.WithDescription("Observations that arrived between a suggestion's model and its trial."),
		metric.WithExplicitBucketBoundaries(0, 1, 2, 4, 8, 16, 32, 64))
	i.err = errors.Join(i.err, err)
	m.observe(i, c)
	return m, i.err
}

// observe registers the gauges that are read when the metrics are collected.
func (m *metrics) observe(i *instruments, c *Coordinator) {
	look := func() *gauges {
		if g := m.gauges.Load(); g != nil && c.term.Load() != nil {
			return g
		}
		return &gauges{}
	}
	i.gauge(telemetry.MetricLeading, "1 while this replica leads.", func(_ context.Context, o metric.Int64Observer) {
		if c.term.Load() != nil {
			o.Observe(1)
		} else {
			o.Observe(0)
		}
	})
	i.gauge(telemetry.MetricPending, "Trials that are queued or being evaluated.", func(_ context.Context, o metric.Int64Observer) {
		o.Observe(look().pending)
	})
	i.gauge(telemetry.MetricStudies, "Running studies.", func(_ context.Context, o metric.Int64Observer) {
		o.Observe(look().studies)
	})
	i.gauge(telemetry.MetricAside, "Messages that the dead-letter queue refused and that are set aside until it takes them.",
		func(_ context.Context, o metric.Int64Observer) {
			if c.term.Load() != nil {
				o.Observe(m.aside.Load())
			}
		})
	space := func(name, description string, value func(*ledger.Space) int64) {
		i.gauge(name, description, func(_ context.Context, o metric.Int64Observer) {
			if s := c.room.now.Load(); s != nil && s.Quota > 0 {
				o.Observe(value(s))
			}
		})
	}
	space(telemetry.MetricLedgerSize, "Bytes of etcd's database.", func(s *ledger.Space) int64 { return s.Size })
	space(telemetry.MetricLedgerUsed, "Bytes of etcd's database that are in use.", func(s *ledger.Space) int64 { return s.Used })
	space(telemetry.MetricLedgerQuota, "Bytes that etcd's database may have.", func(s *ledger.Space) int64 { return s.Quota })
	pools := func(name, description string, value func(slots) int64) {
		i.gauge(name, description, func(_ context.Context, o metric.Int64Observer) {
			for pool, s := range look().pools {
				o.Observe(value(s), metric.WithAttributes(telemetry.AttrPool.String(pool)))
			}
		})
	}
	pools(telemetry.MetricUseful, "Slots that the running studies could use, by pool.", func(s slots) int64 { return s.useful })
	pools(telemetry.MetricSlots, "Slots by pool.", func(s slots) int64 { return s.all })
	pools(telemetry.MetricFreeSlots, "Free slots by pool.", func(s slots) int64 { return s.free })
	pools(telemetry.MetricWorkers, "Workers by pool.", func(s slots) int64 { return s.workers })
	_, err := i.meter.Float64ObservableCounter(telemetry.MetricIdle, metric.WithUnit("s"),
		metric.WithDescription("Time that slots spent free, by pool, summed over the slots."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			for pool, s := range look().pools {
				o.Observe(s.idle, metric.WithAttributes(telemetry.AttrPool.String(pool)))
			}
			return nil
		}))
	i.err = errors.Join(i.err, err)
	studies := func(name, description string, values func(*gauges) map[string]float64) {
		_, err := i.meter.Float64ObservableGauge(name, metric.WithDescription(description),
			metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
				for study, value := range values(look()) {
					o.Observe(value, metric.WithAttributes(telemetry.AttrStudyName.String(study)))
				}
				return nil
			}))
		i.err = errors.Join(i.err, err)
	}
	studies(telemetry.MetricBest, "The best value of a running study so far.", func(g *gauges) map[string]float64 { return g.best })
	studies(telemetry.MetricRecommended, "The posterior mean at the recommended point of a running study.",
		func(g *gauges) map[string]float64 { return g.recommended })
}

// released counts results by their disposition, and republished assignments.
func (m *metrics) released(ctx context.Context, e *publish.Messages) {
	for i := range e.Controls {
		if c := &e.Controls[i]; c.Kind == messaging.ControlReceipt {
			m.results.Add(ctx, 1, metric.WithAttributes(telemetry.AttrDisposition.String(string(c.Disposition))))
		}
	}
	m.republished.Add(ctx, e.Republished)
}

// ended records the metrics of an ended trial.
func (m *metrics) ended(ctx context.Context, r *run, t *record.Trial, folded time.Time) {
	attrs := metric.WithAttributeSet(attribute.NewSet(
		telemetry.AttrStudyName.String(r.name()), telemetry.AttrTrialState.String(string(t.State))))
	m.trials.Add(ctx, 1, attrs, metric.WithAttributes(telemetry.AttrSource.String(string(t.Source))))
	m.staleness.Record(ctx, int64(t.Staleness), attrs)
	for i := range t.Attempts {
		a, reason := &t.Attempts[i], ""
		if a.Failure != nil {
			reason = a.Failure.Reason
		}
		m.attempts.Add(ctx, 1, metric.WithAttributes(telemetry.AttrStudyName.String(r.name()),
			telemetry.AttrAttemptState.String(string(a.State)), telemetry.AttrReason.String(reason)))
	}
	times := t.Times
	if claimed := cmp.Or(times.Claimed, times.Started); !claimed.IsZero() {
		m.queueWait.Record(ctx, max(0, claimed.Sub(times.Created).Seconds()), attrs)
	}
	if !times.Ended.IsZero() && !times.Started.IsZero() {
		evaluation := times.Ended.Sub(times.Started)
		m.evaluation.Record(ctx, evaluation.Seconds(), attrs)
		m.overhead.Record(ctx, (folded.Sub(times.Created) - evaluation).Seconds(), attrs)
	}
}
