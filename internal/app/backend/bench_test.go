package backend

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/study"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// BenchmarkLargeStudy measures the requests for an ended study of 50,000 trials, and how
// long a new leader takes to load it.
func BenchmarkLargeStudy(b *testing.B) {
	const trials = 50_000
	r := newReplica(b, 10*time.Second, func(o *coordinator.Options) { fill(b, o.Etcd, trials) })
	l, ctx := r.l.Ledger, b.Context()
	for name, call := range map[string]func() error{
		"get":  func() error { _, err := r.Study(ctx, "large"); return err },
		"stop": func() error { _, err := r.Stop(ctx, "large", ""); return err },
		"page": func() error { _, err := r.Trials(ctx, "large", trials/2, 100); return err },
		"load": func() error { _, err := l.Load(ctx); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fill stores an ended study named large.
func fill(b *testing.B, client *clientv3.Client, trials int) {
	b.Helper()
	s, err := inject.ParseStudy("", fmt.Appendf(nil, file, "large", trials, "default"))
	if err != nil {
		b.Fatal(err)
	}
	const id = "01arz3ndek0000000000000000"
	dir := ledger.DefaultPrefix + "studies/" + id + "/"
	var ops []clientv3.Op
	flush := func() {
		if _, err := client.Txn(b.Context()).Then(ops...).Commit(); err != nil {
			b.Fatal(err)
		}
		ops = nil
	}
	put := func(key string, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			b.Fatal(err)
		}
		if ops = append(ops, clientv3.OpPut(key, seal.Seal(key, raw))); len(ops) == ledger.MaxOps {
			flush()
		}
	}
	now := time.Now()
	put(ledger.DefaultPrefix+"names/large", map[string]string{"id": id})
	put(dir+"spec", record.Study{ID: id, Definition: *s, Created: now})
	put(dir+"status", record.Status{
		State: study.Completed, Position: int64(2 * trials), Trials: trials, Best: 1, Started: now, Ended: now,
		Counts: record.Counts{Completed: trials},
	})
	for n := 1; n <= trials; n++ {
		put(fmt.Sprintf("%strials/%08d", dir, n), record.Trial{
			Number: n, State: study.TrialCompleted, Point: study.Point{"x": float64(n) / float64(trials)}, Values: study.Values{1},
			Created: int64(2*n - 1), Ended: int64(2 * n), Metrics: map[string]float64{"loss": 1},
			Attempts: []record.Attempt{{Number: 1, Nonce: "n", State: study.AttemptSucceeded, Worker: "w", Opened: now, Ended: now}},
		})
	}
	flush()
}
