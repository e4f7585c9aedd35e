package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// maxObserved bounds how many quotas the metrics show: those of which the largest part is used.
const maxObserved = 200

// observeTime is how long the metrics wait for the leader's answer, which needs etcd.
const observeTime = time.Second

// Observe shows the quotas in metrics. Each replica shows what its own callers use, and the leader
// also what is stored.
func (q *Quotas) Observe(meter metric.Meter, b Reader) error {
	used, err := meter.Int64ObservableGauge(telemetry.MetricQuotaUsed, metric.WithDescription("How much of a quota is used."))
	if err != nil {
		return err
	}
	limit, err := meter.Int64ObservableGauge(telemetry.MetricQuotaLimit, metric.WithDescription("The bound of a quota."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		for _, r := range q.fullest(ctx, b) {
			attrs := metric.WithAttributes(telemetry.AttrQuota.String(string(r.Name)), telemetry.AttrHolder.String(r.Share.Holder))
			o.ObserveInt64(used, r.Used, attrs)
			o.ObserveInt64(limit, r.Share.Limits.Of(r.Name), attrs)
		}
		return nil
	}, used, limit)
	return err
}

// fullest returns the quotas that have a bound, the fullest first.
func (q *Quotas) fullest(ctx context.Context, b Reader) []Row {
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	rows, err := q.Rows(ctx, b)
	if err != nil { // this replica does not lead, or etcd does not answer
		rows = q.callerRows(nil)
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Share.Limits.Of(r.Name) == quota.None })
	part := func(r Row) float64 { return float64(r.Used) / float64(max(1, r.Share.Limits.Of(r.Name))) }
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(part(b), part(a)) })
	return rows[:min(len(rows), maxObserved)]
}
