package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// dial connects to servers in other processes, as a coordinator or a worker would.
func dial(t *testing.T, name string, urls ...string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(strings.Join(urls, ","), natsbus.ConnectOptions(name)...)
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func newLeader(t *testing.T, o natsbus.LeaderOptions, urls ...string) *natsbus.Leader {
	t.Helper()
	l, err := natsbus.NewLeader(dial(t, "coordinator", urls...), o)
	must(t, err)
	closeAtEnd(t, l)
	return l
}

func newWorker(t *testing.T, name string, urls ...string) *natsbus.Worker {
	t.Helper()
	w, err := natsbus.NewWorker(dial(t, name, urls...), natsbus.WorkerOptions{Name: name, Pool: pool, Timeout: time.Second})
	must(t, err)
	closeAtEnd(t, w)
	return w
}

// tally publishes results from several workers until n are acknowledged, and reports
// the count after each acknowledgement. It sends no result again after its
// acknowledgement.
func tally(ctx context.Context, t *testing.T, n int, workers []*natsbus.Worker, acked func(int)) {
	t.Helper()
	var next, done atomic.Int64
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() {
			for trial := int(next.Add(1)); trial <= n; trial = int(next.Add(1)) {
				for w.PublishResult(ctx, result(trial, fmt.Sprintf("w%d", i))) != nil {
					if ctx.Err() != nil {
						t.Errorf("trial %d: %v", trial, ctx.Err())
						return
					}
				}
				acked(int(done.Add(1)))
			}
		})
	}
	wg.Wait()
}

// all reads results until it has seen each trial from 1 to n.
func all(ctx context.Context, t *testing.T, r messaging.Reader, n int) {
	t.Helper()
	seen := map[int]bool{}
	for len(seen) < n {
		e, err := r.Next(ctx)
		if err != nil {
			t.Fatalf("read %d of %d results: %v", len(seen), n, err)
		}
		if e.Result == nil {
			t.Fatalf("read %v", e.Err)
		}
		seen[e.Result.Trial] = true
	}
}

// A server that is killed and restarted three times, under publishers and a reader that
// continue by themselves, loses nothing that it acknowledged.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	const n = 400
	ctx := patient(t)
	server := testenv.StartNATS(t, testenv.NATSConfig{})
	l := newLeader(t, natsbus.LeaderOptions{CheckInterval: time.Second, Timeout: time.Second}, server.URL)
	must(t, l.Setup(ctx, []string{pool}))
	must(t, l.Fence(ctx, 1))
	r, err := l.Read(ctx, messaging.StreamResult, messaging.Cursor{})
	must(t, err)
	defer r.Close()
	workers := make([]*natsbus.Worker, 4)
	for i := range workers {
		workers[i] = newWorker(t, fmt.Sprintf("w%d", i), server.URL)
	}
	kills := make(chan struct{}, 3)
	var killer sync.WaitGroup
	killer.Go(func() {
		for range cap(kills) {
			select {
			case <-kills:
				server.Kill()
				server.Relaunch()
			case <-ctx.Done():
				return
			}
		}
	})
	tally(ctx, t, n, workers, func(acked int) {
		if acked%(n/4) == 0 && acked < n {
			kills <- struct{}{}
		}
	})
	killer.Wait()
	all(ctx, t, r, n)

	eventually(ctx, t, "assign", func() error { return l.Assign(ctx, []*messaging.Assignment{assignment(1)}) })
	fetch(ctx, t, workers[0], 1)
}

// A claim whose acknowledgement is lost still belongs to the worker: a retry under its
// id confirms it, and nobody else gets the attempt.
func TestAcknowledgementLost(t *testing.T) {
	t.Parallel()
	ctx := patient(t)
	server := testenv.StartNATS(t, testenv.NATSConfig{})
	l := newLeader(t, natsbus.LeaderOptions{}, server.URL)
	must(t, l.Setup(ctx, []string{pool}))
	proxy := testenv.StartProxy(t, server.URL)
	w := newWorker(t, "w", "nats://"+proxy.Addr)

	proxy.HoldReplies()
	if err := w.Claim(ctx, "id", claim(1, "w")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("claim without an answer: %v, want a time-out", err)
	}
	if err := newWorker(t, "v", server.URL).Claim(ctx, "id", claim(1, "v")); !errors.Is(err, messaging.ErrClaimed) {
		t.Errorf("another worker's claim: %v, want ErrClaimed", err)
	}
	proxy.Heal()
	proxy.Drop()
	eventually(ctx, t, "claim again", func() error { return w.Claim(ctx, "id", claim(1, "w")) })
	if err := w.Claim(ctx, "of another delivery", claim(1, "w")); !errors.Is(err, messaging.ErrClaimed) {
		t.Errorf("the worker's claim for another delivery: %v, want ErrClaimed", err)
	}
	if last, err := l.Last(ctx, messaging.StreamClaim); err != nil || last != 1 {
		t.Errorf("the stream's last message is %d, %v, want 1: the one claim", last, err)
	}
}

// With three servers there is one winner a claim, the fence holds while leaders race,
// and nothing is lost when the server that leads the streams is killed.
func TestCluster(t *testing.T) {
	t.Parallel()
	const n = 200
	ctx := patient(t)
	servers := testenv.StartNATSCluster(t, 3, testenv.NATSConfig{})
	urls := make([]string, len(servers))
	for i, s := range servers {
		urls[i] = s.URL
	}
	o := natsbus.LeaderOptions{Replicas: 3, CheckInterval: time.Second}
	l := newLeader(t, o, urls...)
	eventually(ctx, t, "set up", func() error { return l.Setup(ctx, []string{pool}) })
	must(t, l.Fence(ctx, 1))
	workers := make([]*natsbus.Worker, 5)
	for i := range workers {
		workers[i] = newWorker(t, fmt.Sprintf("w%d", i), urls[i%len(urls)])
	}
	clusterClaims(ctx, t, workers)
	clusterFence(ctx, t, l, newLeader(t, o, urls[1]), workers[0])

	r, err := l.Read(ctx, messaging.StreamResult, messaging.Cursor{})
	must(t, err)
	defer r.Close()
	// These connect to the surviving servers.
	stream := streamLeader(ctx, t, dial(t, "administrator", urls...))
	urls = slices.Delete(urls, stream, stream+1)
	for i := range workers {
		workers[i] = newWorker(t, fmt.Sprintf("w%d", i), urls[i%len(urls)])
	}
	var kill sync.Once
	tally(ctx, t, n, workers, func(acked int) {
		if acked >= n/2 {
			kill.Do(servers[stream].Kill)
		}
	})
	all(ctx, t, r, n)
}

func clusterClaims(ctx context.Context, t *testing.T, workers []*natsbus.Worker) {
	t.Helper()
	for trial := 1; trial <= 10; trial++ {
		errs := make([]error, len(workers))
		var wg sync.WaitGroup
		for i, w := range workers {
			wg.Go(func() { errs[i] = w.Claim(ctx, "id", claim(trial, fmt.Sprintf("w%d", i))) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, messaging.ErrClaimed) {
				t.Errorf("trial %d: %v, want ErrClaimed", trial, err)
			}
		}
		if won != 1 {
			t.Errorf("trial %d: %d winners", trial, won)
		}
	}
}

// clusterFence races an older leader's batches, several at a time, with a newer
// one's fence.
func clusterFence(ctx context.Context, t *testing.T, older, newer *natsbus.Leader, w *natsbus.Worker) {
	t.Helper()
	const batch = 20
	var wg sync.WaitGroup
	var published atomic.Int64
	started := make(chan struct{}, 1)
	for i := range 3 {
		wg.Go(func() {
			for k := range 1000 {
				as := make([]*messaging.Assignment, batch)
				for j := range as {
					as[j] = assignment(1 + j + batch*(k+1000*i))
				}
				if err := older.Assign(ctx, as); err != nil {
					if !errors.Is(err, messaging.ErrFenced) {
						t.Errorf("the older leader: %v, want ErrFenced", err)
					}
					return
				}
				published.Add(batch)
				select {
				case started <- struct{}{}:
				default:
				}
			}
		})
	}
	<-started
	must(t, newer.Fence(ctx, 2))
	before := published.Load()
	wg.Wait()
	if late := published.Load() - before; late > 3*batch {
		t.Errorf("%d assignments were published after the fence", late)
	}
	for range published.Load() {
		d, err := w.Fetch(ctx)
		must(t, err)
		must(t, d.Ack(ctx))
	}
	must(t, newer.Assign(ctx, []*messaging.Assignment{assignment(1 << 20)}))
	fetch(ctx, t, w, 1<<20)
}

// streamLeader is the index of the server that leads the results' stream.
func streamLeader(ctx context.Context, t *testing.T, nc *nats.Conn) int {
	t.Helper()
	js, err := jetstream.New(nc)
	must(t, err)
	s, err := js.Stream(ctx, "FANTASIA_RESULT")
	must(t, err)
	var i int
	if _, err := fmt.Sscanf(s.CachedInfo().Cluster.Leader, "nats-%d", &i); err != nil {
		t.Fatal(err)
	}
	return i
}
