package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func startEtcd(t testing.TB, quota int64) (*embedded.Etcd, *clientv3.Client) {
	t.Helper()
	e, err := embedded.StartEtcd(testContext(t), embedded.EtcdOptions{Dir: t.TempDir(), QuotaBytes: quota})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := e.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return e, c
}

// intercepted is a client of etcd whose requests pass an interceptor.
func intercepted(t testing.TB, e *embedded.Etcd, i grpc.UnaryClientInterceptor) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{e.Endpoint()}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(i)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// seize makes the leader's key anew and returns the fence of its holder.
func seize(t testing.TB, c *clientv3.Client, key string) Fence {
	t.Helper()
	ctx := testContext(t)
	if _, err := c.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	resp, err := c.Put(ctx, key, "leader")
	if err != nil {
		t.Fatal(err)
	}
	return Fence{Key: key, Revision: resp.Header.Revision}
}

func lead(t testing.TB, l *Ledger, c *clientv3.Client) *Writer {
	t.Helper()
	w, err := l.Lead(testContext(t), seize(t, c, l.LeaderKey()))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// newLedger is a ledger over an etcd of its own, and a writer of it.
func newLedger(t testing.TB, o Options) (*Ledger, *Writer, *clientv3.Client) {
	t.Helper()
	_, c := startEtcd(t, 0)
	l := New(c, o)
	return l, lead(t, l, c), c
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newStudy(id, name string) *record.Study {
	return &record.Study{ID: id, Created: start, Definition: study.Study{
		APIVersion: study.APIVersion, Kind: study.Kind, Metadata: study.Metadata{Name: name},
	}}
}

func newTrial(number int) *record.Trial {
	return &record.Trial{
		Number: number, State: study.TrialPending, Created: int64(number),
		Point:    study.Point{"whole": int64(number), "real": float64(number), "big": int64(1)<<62 + 1, "name": "x", "flag": true},
		Attempts: []record.Attempt{{Number: 1, Nonce: fmt.Sprint("nonce-", number), State: study.AttemptOpen, Opened: start}},
	}
}

// create stores a study with trials 1 to n.
func create(t testing.TB, w *Writer, id, name string, n int) *record.Study {
	t.Helper()
	s := newStudy(id, name)
	var b Batch
	b.PutStatus(id, &record.Status{State: study.Running, Trials: n, Counts: record.Counts{Pending: n}})
	for i := 1; i <= n; i++ {
		b.PutTrial(id, newTrial(i))
	}
	if err := w.Create(testContext(t), s, &b); err != nil {
		t.Fatal(err)
	}
	return s
}

// position is the position of a study's status in the ledger.
func position(t testing.TB, l *Ledger, id string) int64 {
	t.Helper()
	s, err := l.Study(testContext(t), id)
	if err != nil {
		t.Fatal(err)
	}
	return s.Status.Position
}

// at is a batch that moves a study's status to a position.
func at(id string, position int64) *Batch {
	var b Batch
	b.PutStatus(id, &record.Status{State: study.Running, Position: position})
	return &b
}
