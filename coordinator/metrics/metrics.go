// Package metrics holds the instruments of a coordinator.
package metrics

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/publish"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Metrics are the coordinator's instruments. Safe for concurrent use.
type Metrics struct {
	queueWait, evaluation, phase, overhead, suggest, commit metric.Float64Histogram
	staleness                                               metric.Int64Histogram
	trials, takeovers, results, republished                 metric.Int64Counter
	attempts, suggestErrors, buryRefused                    metric.Int64Counter
	// gauges are the loop's last ones; they are read when the metrics are collected.
	gauges atomic.Pointer[Gauges]
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

// Sources are what the gauges read when the metrics are collected.
type Sources struct {
	// Leading reports whether this replica leads.
	Leading func() bool
	// Space returns how full etcd is; nil if that is not known.
	Space func() *ledger.Space
}

// New makes the instruments.
//
//nolint:contextcheck // a counter needs none to begin
func New(meter metric.Meter, from Sources) (*Metrics, error) {
	i := &instruments{meter: meter}
	m := &Metrics{
		queueWait:  i.duration(telemetry.MetricQueueWait, "From a trial's creation to its claim."),
		evaluation: i.duration(telemetry.MetricEvaluation, "From the start of an evaluation to its end."),
		phase: i.duration(telemetry.MetricPhase,
			"Parts of an evaluation in a Job of Kubernetes; fantasia.phase=run is the program's own time."),
		overhead:  i.duration(telemetry.MetricOverhead, "Time that a trial took outside its evaluation."),
		suggest:   i.duration(telemetry.MetricSuggest, "Time that the optimiser took to answer a request."),
		commit:    i.duration(telemetry.MetricCommit, "A group commit to etcd."),
		trials:    i.counter(telemetry.MetricTrials, "Ended trials by state."),
		takeovers: i.counter(telemetry.MetricTakeovers, "Terms that this replica has begun."),
		results:   i.counter(telemetry.MetricResults, "Results that were read, by disposition."),
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
	m.observe(i, from)
	if i.err == nil {
		// A counter that begins with 1 does not rise: not at the first time, and never where each process
		// ends after its first.
		for _, c := range []metric.Int64Counter{m.takeovers, m.republished, m.buryRefused} {
			c.Add(context.Background(), 0)
		}
	}
	return m, i.err
}

// observe registers the gauges that are read when the metrics are collected.
func (m *Metrics) observe(i *instruments, from Sources) {
	current := func() *Gauges {
		if g := m.gauges.Load(); g != nil && from.Leading() {
			return g
		}
		return &Gauges{}
	}
	i.gauge(telemetry.MetricLeading, "1 while this replica leads.", func(_ context.Context, o metric.Int64Observer) {
		if from.Leading() {
			o.Observe(1)
		} else {
			o.Observe(0)
		}
	})
	i.gauge(telemetry.MetricPending, "Trials that are queued or being evaluated.", func(_ context.Context, o metric.Int64Observer) {
		o.Observe(current().Pending)
	})
	i.gauge(telemetry.MetricStudies, "Running studies.", func(_ context.Context, o metric.Int64Observer) {
		o.Observe(current().Studies)
	})
	i.gauge(telemetry.MetricAside, "Messages that the dead-letter queue refused and that are set aside until it takes them.",
		func(_ context.Context, o metric.Int64Observer) {
			if from.Leading() {
				o.Observe(m.aside.Load())
			}
		})
	space := func(name, description string, value func(*ledger.Space) int64) {
		i.gauge(name, description, func(_ context.Context, o metric.Int64Observer) {
			if s := from.Space(); s != nil && s.Quota > 0 {
				o.Observe(value(s))
			}
		})
	}
	space(telemetry.MetricLedgerSize, "Bytes of etcd's database.", func(s *ledger.Space) int64 { return s.Size })
	space(telemetry.MetricLedgerUsed, "Bytes of etcd's database that are in use.", func(s *ledger.Space) int64 { return s.Used })
	space(telemetry.MetricLedgerQuota, "Bytes that etcd's database may have.", func(s *ledger.Space) int64 { return s.Quota })
	pools := func(name, description string, value func(Slots) int64) {
		i.gauge(name, description, func(_ context.Context, o metric.Int64Observer) {
			for pool, s := range current().Pools {
				o.Observe(value(s), metric.WithAttributes(telemetry.AttrPool.String(pool)))
			}
		})
	}
	pools(telemetry.MetricUseful, "Slots that the running studies could use, by pool.", func(s Slots) int64 { return s.Useful })
	pools(telemetry.MetricSlots, "Slots by pool.", func(s Slots) int64 { return s.All })
	pools(telemetry.MetricFreeSlots, "Free slots by pool.", func(s Slots) int64 { return s.Free })
	pools(telemetry.MetricWorkers, "Workers by pool.", func(s Slots) int64 { return s.Workers })
	_, err := i.meter.Float64ObservableCounter(telemetry.MetricIdle, metric.WithUnit("s"),
		metric.WithDescription("Time that slots spent free, by pool, summed over the slots."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			for pool, s := range current().Pools {
				o.Observe(s.Idle, metric.WithAttributes(telemetry.AttrPool.String(pool)))
			}
			return nil
		}))
	i.err = errors.Join(i.err, err)
	studies := func(name, description string, values func(*Gauges) map[string]float64) {
		_, err := i.meter.Float64ObservableGauge(name, metric.WithDescription(description),
			metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
				for study, value := range values(current()) {
					o.Observe(value, metric.WithAttributes(telemetry.AttrStudyName.String(study)))
				}
				return nil
			}))
		i.err = errors.Join(i.err, err)
	}
	studies(telemetry.MetricBest, "The best value of a running study so far.", func(g *Gauges) map[string]float64 { return g.Best })
	studies(telemetry.MetricRecommended, "The posterior mean at the recommended point of a running study.",
		func(g *Gauges) map[string]float64 { return g.Recommended })
	studies(telemetry.MetricHypervolume, "How much of the space of values the front of a running study dominates, up to the references.",
		func(g *Gauges) map[string]float64 { return g.Hypervolume })
}

// Show makes gauges the ones that are read from now on.
func (m *Metrics) Show(g *Gauges) { m.gauges.Store(g) }

// Aside returns how many messages are set aside: see package deadletter.
func (m *Metrics) Aside() int64 { return m.aside.Load() }

// SetAside says how many messages are set aside.
func (m *Metrics) SetAside(n int) { m.aside.Store(int64(n)) }

// Refused counts a message that the dead-letter queue has refused.
func (m *Metrics) Refused(ctx context.Context) { m.buryRefused.Add(ctx, 1) }

// TookOver counts a term that has begun.
func (m *Metrics) TookOver(ctx context.Context) { m.takeovers.Add(ctx, 1) }

// Committed records how long a commit to etcd took, failed or not.
func (m *Metrics) Committed(ctx context.Context, took time.Duration) {
	m.commit.Record(ctx, took.Seconds())
}

// Suggested records a request to an optimiser, and whether it failed.
func (m *Metrics) Suggested(ctx context.Context, algorithm string, took time.Duration, failed bool) {
	attrs := metric.WithAttributeSet(attribute.NewSet(telemetry.AttrAlgorithm.String(algorithm)))
	m.suggest.Record(ctx, took.Seconds(), attrs)
	n := int64(0) // added even when it is 0, so that the counter exists before the first failure
	if failed {
		n = 1
	}
	m.suggestErrors.Add(ctx, n, attrs)
}

// Released counts results by their disposition, and republished assignments.
func (m *Metrics) Released(ctx context.Context, e *publish.Messages) {
	for i := range e.Controls {
		if c := &e.Controls[i]; c.Kind == messaging.ControlReceipt {
			m.results.Add(ctx, 1, metric.WithAttributes(telemetry.AttrDisposition.String(string(c.Disposition))))
		}
	}
	m.republished.Add(ctx, e.Republished)
}

// Ended records the metrics of an ended trial.
func (m *Metrics) Ended(ctx context.Context, study string, t *record.Trial, folded time.Time) {
	attrs := metric.WithAttributeSet(attribute.NewSet(
		telemetry.AttrStudyName.String(study), telemetry.AttrTrialState.String(string(t.State))))
	m.trials.Add(ctx, 1, attrs, metric.WithAttributes(telemetry.AttrSource.String(string(t.Source))))
	m.staleness.Record(ctx, int64(t.Staleness), attrs)
	for i := range t.Attempts {
		a, reason := &t.Attempts[i], ""
		if a.Failure != nil {
			reason = a.Failure.Reason
		}
		m.attempts.Add(ctx, 1, metric.WithAttributes(telemetry.AttrStudyName.String(study),
			telemetry.AttrAttemptState.String(string(a.State)), telemetry.AttrReason.String(reason)))
	}
	times := t.Times
	if claimed := cmp.Or(times.Claimed, times.Started); !claimed.IsZero() {
		m.queueWait.Record(ctx, max(0, claimed.Sub(times.Created).Seconds()), attrs)
	}
	if !times.Ended.IsZero() && !times.Started.IsZero() {
		evaluation := times.Ended.Sub(times.Started)
		m.evaluation.Record(ctx, evaluation.Seconds(), attrs)
		for _, p := range t.Last().Phases() {
			m.phase.Record(ctx, p.End.Sub(p.Start).Seconds(), attrs, metric.WithAttributes(telemetry.AttrPhase.String(p.Name)))
		}
		m.overhead.Record(ctx, (folded.Sub(times.Created) - evaluation).Seconds(), attrs)
	}
}

// Gauges are the values of the leader's gauges at one time.
type Gauges struct {
	At time.Time
	// Pending counts the open trials of running studies, and Studies these studies.
	Pending, Studies int64
	Pools            map[string]Slots
	// Best and Recommended are, by study, the best value and the posterior mean at
	// the recommended point. Hypervolume is that of the front, where it is measured.
	Best, Recommended, Hypervolume map[string]float64
}

// Slots are those of a pool: all that its workers have, those that are free, and those that the
// running studies could use.
type Slots struct {
	All, Free, Workers, Useful int64
	Idle                       float64 // seconds that slots were free, since the term began
}
