package backend

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/show/dashboard"
	"github.com/fantasia-hpo/fantasia/study"
)

// BenchmarkLargeStudy measures the requests for an ended study of 50,000 trials, and how
// long a new leader takes to load it.
func BenchmarkLargeStudy(b *testing.B) {
	const trials = 50_000
	r := newReplica(b, 10*time.Second, realEtcd(b), func(o *coordinator.Options) { fill(b, o.Etcd, trials) })
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

var manyStudies = flag.Int("studies", 1000, "how many studies BenchmarkManyStudies stores")

// BenchmarkManyStudies measures a page of a list, the dashboard's first page, and how long a new leader takes to
// read the ledger, among many ended studies of 100 kB.
// whole-files reads every specification besides, as leaders do who do not use heads.
func BenchmarkManyStudies(b *testing.B) {
	const size = 100_000
	r := newReplica(b, 10*time.Second, realEtcd(b), func(o *coordinator.Options) { fillMany(b, o.Etcd, *manyStudies, size) })
	ctx := b.Context()
	_, api, err := server.New(r.Backend, server.Options{})
	if err != nil {
		b.Fatal(err)
	}
	pages := dashboard.New(r.Backend, dashboard.Options{API: api})
	b.Cleanup(func() {
		if err := pages.Close(); err != nil {
			b.Error(err)
		}
	})
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"page-of-5", func() error { _, err := r.Studies(ctx, "", 5); return err }},
		{"dashboard", func() error {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, dashboard.Path, nil))
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "many-0") {
				return fmt.Errorf("the dashboard answered %d", w.Code)
			}
			return nil
		}},
		{"takeover-reads", func() error {
			snap, err := r.l.Load(ctx)
			if err == nil && len(snap.Studies) != *manyStudies {
				err = fmt.Errorf("read %d studies, want %d", len(snap.Studies), *manyStudies)
			}
			return err
		}},
		{"whole-files", func() error {
			snap, err := r.l.Load(ctx)
			if err != nil {
				return err
			}
			for i := range snap.Studies { // one at a time, so that they need not have room in memory
				if _, err := r.l.Ledger.Study(ctx, snap.Studies[i].Study.ID); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fillMany stores ended studies of a size, as a leader does.
func fillMany(b *testing.B, client *clientv3.Client, count, size int) {
	b.Helper()
	l, ctx := ledger.New(client, ledger.Options{}), b.Context()
	key, err := client.Put(ctx, l.LeaderKey(), "filler")
	if err != nil {
		b.Fatal(err)
	}
	w, err := l.Lead(ctx, ledger.Fence{Key: l.LeaderKey(), Revision: key.Header.Revision})
	if err != nil {
		b.Fatal(err)
	}
	s, err := inject.ParseStudy("", fmt.Appendf(nil, file, "many", 10, "default"))
	if err != nil {
		b.Fatal(err)
	}
	like := s.Spec.Parameters[0]
	for ledger.Size(&record.Study{Definition: *s}) < int64(size) {
		for range 20 {
			like.Name = fmt.Sprintf("a_parameter_with_a_long_name_%d", len(s.Spec.Parameters))
			s.Spec.Parameters = append(s.Spec.Parameters, like)
		}
	}
	start := time.Now()
	for i := range count {
		spec := record.Study{ID: record.NewID(rand.Reader, start.Add(time.Duration(i)*time.Millisecond)), Definition: *s, Created: start}
		spec.Definition.Metadata.Name = fmt.Sprintf("many-%06d", i)
		var batch ledger.Batch
		batch.PutStatus(spec.ID, &record.Status{State: study.Stopped, Started: start, Ended: start})
		if err := w.Create(ctx, &spec, &batch); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := client.Delete(ctx, l.LeaderKey()); err != nil {
		b.Fatal(err)
	}
}
