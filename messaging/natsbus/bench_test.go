package natsbus_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// BenchmarkTrial measures the messages of one trial, one after another on one
// goroutine: assign, fetch, claim, acknowledge, read the claim, publish the result,
// read it.
func BenchmarkTrial(b *testing.B) {
	ctx := b.Context()
	broker := startBroker(b)
	l := lead(ctx, b, broker, 1)
	w := broker.worker("w", pool)
	claims, err := l.Read(ctx, messaging.StreamClaim, messaging.Cursor{})
	must(b, err)
	defer claims.Close()
	results, err := l.Read(ctx, messaging.StreamResult, messaging.Cursor{})
	must(b, err)
	defer results.Close()
	b.ResetTimer()
	for i := range b.N {
		trial := i + 1
		must(b, l.Assign(ctx, []*messaging.Assignment{assignment(trial)}))
		must(b, evaluate(ctx, w, "w"))
		_, err := claims.Next(ctx)
		must(b, err)
		_, err = results.Next(ctx)
		must(b, err)
	}
}

// evaluate is a worker's part in a trial.
func evaluate(ctx context.Context, w *natsbus.Worker, name string) error {
	d, err := w.Fetch(ctx)
	if err != nil {
		return err
	}
	trial := d.Assignment().Trial
	if err := w.Claim(ctx, "id", claim(trial, name)); err != nil {
		return err
	}
	if err := d.Ack(ctx); err != nil {
		return err
	}
	return w.PublishResult(ctx, result(trial, name))
}

// BenchmarkTrials measures the same with 8 slots that never wait for the leader, which
// assigns 16 at a time and reads both streams.
func BenchmarkTrials(b *testing.B) {
	const slots, batch = 8, 16
	ctx, cancel := context.WithCancelCause(b.Context())
	defer cancel(nil)
	broker := startBroker(b)
	l := lead(ctx, b, broker, 1)
	w := broker.worker("w", pool)
	results, err := l.Read(ctx, messaging.StreamResult, messaging.Cursor{})
	must(b, err)
	defer results.Close()
	claims, err := l.Read(ctx, messaging.StreamClaim, messaging.Cursor{})
	must(b, err)
	defer claims.Close()
	b.ResetTimer()
	var wg sync.WaitGroup
	// run stops all others if one of them fails.
	run := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				cancel(err)
			}
		})
	}
	run(func() error {
		for trial := 1; trial <= b.N; trial += batch {
			var as []*messaging.Assignment
			for i := trial; i < trial+batch && i <= b.N; i++ {
				as = append(as, assignment(i))
			}
			if err := l.Assign(ctx, as); err != nil {
				return err
			}
		}
		return nil
	})
	var begun atomic.Int64
	for range slots {
		run(func() error {
			for begun.Add(1) <= int64(b.N) {
				if err := evaluate(ctx, w, "w"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, r := range []messaging.Reader{claims, results} {
		run(func() error {
			for range b.N {
				if _, err := r.Next(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	wg.Wait()
	must(b, context.Cause(ctx))
}

// BenchmarkAssign measures one Assign of several assignments under the fence.
func BenchmarkAssign(b *testing.B) {
	for _, n := range []int{1, 2, 8, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			ctx := b.Context()
			l := lead(ctx, b, startBroker(b), 1)
			as := make([]*messaging.Assignment, n)
			for i := range as {
				as[i] = assignment(i + 1)
			}
			for b.Loop() {
				must(b, l.Assign(ctx, as))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/assignment")
		})
	}
}
