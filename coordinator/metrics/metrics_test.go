package metrics_test

import (
	"maps"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/metrics"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// What a trial waited for in its Job, and how long its program itself ran, are told apart.
func TestPhasesOfTrials(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	m, err := metrics.New(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"), metrics.Sources{
		Leading: func() bool { return true }, Space: func() *ledger.Space { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	attempt := record.Attempt{Number: 1, Started: at(0), Ended: at(30),
		Stages: &messaging.Stages{Created: at(1), Scheduled: at(11), Prepared: at(13), Started: at(18), Ended: at(25)}}
	trial := record.Trial{Attempts: []record.Attempt{attempt}, Times: record.Times{Created: at(-1), Started: at(0), Ended: at(30)}}
	m.Ended(t.Context(), "digits", &trial, at(31))
	trial.Attempts[0].Stages = nil // of a worker without Jobs
	m.Ended(t.Context(), "digits", &trial, at(31))
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, metric := range all.ScopeMetrics[0].Metrics {
		if metric.Name != telemetry.MetricPhase {
			continue
		}
		for _, point := range metric.Data.(metricdata.Histogram[float64]).DataPoints {
			name, _ := point.Attributes.Value(telemetry.AttrPhase)
			sums[name.AsString()] += point.Sum
			if point.Count != 1 {
				t.Errorf("the phase %s was recorded %d times, want once", name.AsString(), point.Count)
			}
		}
	}
	for name, want := range map[string]float64{"admit": 1, "schedule": 10, "prepare": 2, "start": 5, "run": 7, "finish": 5} {
		if sums[name] != want {
			t.Errorf("the phase %s took %v s, want %v", name, sums[name], want)
		}
	}
	if len(sums) != 6 {
		t.Errorf("the phases are %v", sums)
	}
}

// The first time is seen as a rise of the counter, even where each process ends after its first.
func TestCountersBeginAtNone(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	m, err := metrics.New(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"), metrics.Sources{
		Leading: func() bool { return false }, Space: func() *ledger.Space { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	counts := func() map[string]int64 {
		t.Helper()
		var all metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		counts := map[string]int64{}
		for _, metric := range all.ScopeMetrics[0].Metrics {
			if sum, ok := metric.Data.(metricdata.Sum[int64]); ok {
				for _, point := range sum.DataPoints {
					counts[metric.Name] += point.Value
				}
			}
		}
		return counts
	}
	want := map[string]int64{telemetry.MetricTakeovers: 0, telemetry.MetricRepublished: 0, telemetry.MetricRefused: 0}
	if got := counts(); !maps.Equal(got, want) {
		t.Errorf("at first the counters are %v, want %v", got, want)
	}
	m.TookOver(t.Context())
	want[telemetry.MetricTakeovers] = 1
	if got := counts(); !maps.Equal(got, want) {
		t.Errorf("after a take-over the counters are %v, want %v", got, want)
	}
}
