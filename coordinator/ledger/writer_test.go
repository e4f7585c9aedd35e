package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestCommitAndLoad(t *testing.T) {
	l, w, _ := newLedger(t, Options{PageSize: 3})
	ctx := testContext(t)
	s := create(t, w, "id1", "digits", 4)
	cursor := messaging.Cursor{Created: start, Sequence: 7, Timestamp: start.Add(time.Second)}
	trial := newTrial(5)
	trial.State = study.TrialQueued
	var b Batch
	b.PutTrial("id1", newTrial(5))
	b.PutTrial("id1", trial) // etcd refuses a key twice in a transaction
	status := &record.Status{State: study.Running, Trials: 5, Counts: record.Counts{Pending: 4, Queued: 1}}
	b.PutStatus("id1", status)
	b.PutModel("id1", &record.Model{Request: 3, State: []byte("state")})
	b.PutCursor(messaging.StreamClaim, cursor)
	if err := w.Commit(ctx, &b); err != nil {
		t.Fatal(err)
	}
	snap, err := l.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := &Snapshot{
		Revision: snap.Revision,
		Cursors:  map[messaging.Stream]messaging.Cursor{messaging.StreamClaim: cursor},
		Studies: []Records{{
			Study: *s, Bytes: Size(s), Status: *status,
			Model:  record.Model{Request: 3, State: []byte("state")},
			Trials: []record.Trial{*newTrial(1), *newTrial(2), *newTrial(3), *newTrial(4), *trial},
		}},
	}
	if diff := cmp.Diff(want, snap); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
}

func TestCommitOfNothingWritesNothing(t *testing.T) {
	_, w, c := newLedger(t, Options{})
	before := w.head
	if err := w.Commit(testContext(t), &Batch{}); err != nil || w.head != before {
		t.Errorf("empty batch: %v, head %d; want %d", err, w.head, before)
	}
	if resp, err := c.Get(testContext(t), DefaultPrefix+"commits/", clientv3.WithPrefix()); err != nil || resp.Count != 0 {
		t.Errorf("commits: %v, %v; want none", resp, err)
	}
}

// A leader that was replaced writes nothing, and without the fence it would.
func TestZombieIsFenced(t *testing.T) {
	for _, unfenced := range []bool{false, true} {
		t.Run(fmt.Sprint("unfenced=", unfenced), func(t *testing.T) {
			l, zombie, c := newLedger(t, Options{})
			create(t, zombie, "id1", "digits", 0)
			seize(t, c, l.LeaderKey())
			zombie.unfenced = unfenced
			err := zombie.Commit(testContext(t), at("id1", 99))
			stored := position(t, l, "id1") == 99
			if stored != unfenced {
				t.Fatalf("the zombie's write was stored: %v (its answer: %v); want %v", stored, err, unfenced)
			}
			if unfenced {
				return
			}
			if !errors.Is(err, ErrFenced) || errors.Is(err, ErrUnknown) {
				t.Errorf("answer %v; want ErrFenced alone", err)
			}
			if err := zombie.Commit(testContext(t), at("id1", 100)); !errors.Is(err, ErrFenced) {
				t.Errorf("its next write: %v; want ErrFenced", err)
			}
		})
	}
}

func TestLeadNeedsTheFence(t *testing.T) {
	l, w, c := newLedger(t, Options{})
	seize(t, c, l.LeaderKey())
	if _, err := l.Lead(testContext(t), w.fence); !errors.Is(err, ErrFenced) {
		t.Errorf("lead under an old fence: %v; want ErrFenced", err)
	}
}

// A copy of a transaction that arrives after later ones must not take the
// records back, and without the order of commits it would.
func TestDelayedCopyIsRefused(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		t.Run(fmt.Sprint("unordered=", unordered), func(t *testing.T) {
			l, w, c := newLedger(t, Options{})
			create(t, w, "id1", "digits", 0)
			w.unordered = unordered
			delayed := c.Txn(testContext(t)).If(w.fences(nil)...).Then(at("id1", 1).ops[0].etcd(DefaultPrefix))
			for p := range int64(2) {
				if err := w.Commit(testContext(t), at("id1", p+1)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := delayed.Commit(); err != nil {
				t.Fatal(err)
			}
			if back := position(t, l, "id1") == 1; back != unordered {
				t.Errorf("the delayed copy took the record back: %v; want %v", back, unordered)
			}
		})
	}
}

// newRemoteLedger is a ledger whose requests to an etcd process pass a proxy,
// and a client that does not.
func newRemoteLedger(t *testing.T, o Options) (*Ledger, *testenv.Proxy, *clientv3.Client) {
	t.Helper()
	e := testenv.StartEtcd(t)
	p := testenv.StartProxy(t, e.URL)
	return New(testenv.EtcdClient(t, "http://"+p.Addr), o), p, testenv.EtcdClient(t, e.URL)
}

// waitFor waits until a key has been written after a revision.
func waitFor(t *testing.T, c *clientv3.Client, key string, after int64) {
	t.Helper()
	for resp := range c.Watch(testContext(t), key, clientv3.WithRev(after+1)) {
		if err := resp.Err(); err != nil {
			t.Fatal(err)
		}
		if len(resp.Events) > 0 {
			return
		}
	}
	t.Fatalf("%s was not written", key)
}

// etcd stores the transaction and its answer is lost: the copy that is sent
// again finds the nonce.
func TestLostAnswerIsDecidedByTheNonce(t *testing.T) {
	l, proxy, direct := newRemoteLedger(t, Options{TryTimeout: 200 * time.Millisecond})
	w := lead(t, l, direct)
	create(t, w, "id1", "digits", 0)
	before := w.head

	proxy.HoldReplies()
	done := make(chan error, 1)
	go func() { done <- w.Commit(testContext(t), at("id1", 1)) }()
	waitFor(t, direct, l.commitKey(), before)
	proxy.Drop()
	proxy.Heal()
	if err := <-done; err != nil {
		t.Fatalf("a commit whose answer was lost: %v", err)
	}
	resp, err := direct.Get(testContext(t), l.commitKey())
	if err != nil {
		t.Fatal(err)
	}
	created, err := direct.Get(testContext(t), l.o.Prefix+studyKey("id1", statusLeaf))
	if err != nil {
		t.Fatal(err)
	}
	if v := created.Kvs[0].Version; v != 2 || w.head != resp.Kvs[0].ModRevision {
		t.Errorf("the status was written %d times, the head is %d; want 2 (creation included) and %d", v, w.head, resp.Kvs[0].ModRevision)
	}
	if err := w.Commit(testContext(t), at("id1", 2)); err != nil {
		t.Errorf("the next commit: %v", err)
	}
}

func TestNoAnswerIsUnknownAndFinal(t *testing.T) {
	l, proxy, direct := newRemoteLedger(t, Options{})
	w := lead(t, l, direct)
	create(t, w, "id1", "digits", 0)
	proxy.Hold()
	l.o.TryTimeout, l.o.Deadline = 50*time.Millisecond, 300*time.Millisecond // nothing is answered from now on, however slow the machine
	for range 2 {
		if err := w.Commit(testContext(t), at("id1", 1)); !errors.Is(err, ErrUnknown) {
			t.Errorf("a commit without an answer: %v; want ErrUnknown", err)
		}
	}
	proxy.Heal()
	if err := w.Commit(testContext(t), at("id1", 2)); !errors.Is(err, ErrUnknown) {
		t.Errorf("a commit after it: %v; want ErrUnknown, since the first may be stored or not", err)
	}
}

func TestNameIsTakenOnce(t *testing.T) {
	l, w, _ := newLedger(t, Options{})
	create(t, w, "id1", "digits", 1)
	var b Batch
	b.PutStatus("id2", &record.Status{State: study.Running})
	err := w.Create(testContext(t), newStudy("id2", "digits"), &b)
	if !errors.Is(err, ErrNameTaken) || !strings.Contains(err.Error(), "id1") {
		t.Errorf("a second study of the name: %v; want ErrNameTaken with id1", err)
	}
	if _, err := l.Study(testContext(t), "id2"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the refused study: %v; want ErrNotFound", err)
	}

	var d Batch
	d.PutTrial("id1", newTrial(2))
	d.DeleteStudy("id1", "digits")
	d.PutTrial("id1", newTrial(3))
	if err := w.Commit(testContext(t), &d); err != nil {
		t.Fatal(err)
	}
	create(t, w, "id2", "digits", 1)
	snap, err := l.Load(testContext(t))
	if err != nil || len(snap.Studies) != 1 || snap.Studies[0].Study.ID != "id2" {
		t.Errorf("after a deletion and a new start: %+v, %v; want id2 alone", snap, err)
	}
}

func TestNoSpaceIsToldAndOver(t *testing.T) {
	_, c := startEtcd(t, 3<<20)
	l := New(c, Options{})
	w := lead(t, l, c)
	ctx := testContext(t)
	create(t, w, "id1", "digits", 0)
	reason := strings.Repeat("x", 500_000)
	var err error
	for p := int64(1); err == nil && ctx.Err() == nil; p++ {
		var b Batch
		b.PutStatus("id1", &record.Status{State: study.Running, Position: p, Reason: reason})
		err = w.Commit(ctx, &b)
	}
	if !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrUnknown) {
		t.Fatalf("a full database: %v; want ErrNoSpace", err)
	}
	full, err := l.Space(ctx)
	if err != nil || !full.Full {
		t.Fatalf("a full database is %+v, %v", full, err)
	}
	if reopened, err := l.Reopen(ctx, full); reopened || err != nil {
		t.Errorf("without room the alarm ends: %v, %v", reopened, err)
	}
	makeRoom(t, c)
	if err := w.Commit(ctx, at("id1", 998)); !errors.Is(err, ErrNoSpace) {
		t.Errorf("before the alarm is over: %v; want ErrNoSpace", err)
	}
	room, err := l.Space(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if reopened, err := l.Reopen(ctx, room); !reopened || err != nil {
		t.Errorf("with room, %+v, the alarm ends: %v, %v", room, reopened, err)
	}
	if err := w.Commit(ctx, at("id1", 999)); err != nil || position(t, l, "id1") != 999 {
		t.Errorf("after making room: %v", err)
	}
}

// etcd answers that it has no space left both to what it refuses and to the last
// transaction that it stores.
func TestNoSpaceIsDecidedByTheNonce(t *testing.T) {
	for _, stored := range []bool{true, false} {
		t.Run(fmt.Sprint("stored=", stored), func(t *testing.T) {
			e, c := startEtcd(t, 0)
			create(t, lead(t, New(c, Options{}), c), "id1", "digits", 0)
			full := false
			answering := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
				opts ...grpc.CallOption) error {
				if _, ok := req.(*etcdserverpb.TxnRequest); !ok || !full {
					return invoke(ctx, method, req, reply, cc, opts...)
				}
				if stored {
					if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
						return err
					}
				}
				return rpctypes.ErrGRPCNoSpace
			}
			l := New(intercepted(t, e, answering), Options{})
			w := lead(t, l, c)
			full = true
			err := w.Commit(testContext(t), at("id1", 1))
			if stored && err != nil || !stored && !errors.Is(err, ErrNoSpace) {
				t.Errorf("a commit that was stored: %v, answered with no space, returns %v", stored, err)
			}
			full = false
			if err := w.Commit(testContext(t), at("id1", 2)); err != nil {
				t.Errorf("the next commit: %v", err)
			}
		})
	}
}

// makeRoom is what the hint in ErrNoSpace tells an operator to do; etcd then still refuses writes.
func makeRoom(t *testing.T, c *clientv3.Client) {
	t.Helper()
	ctx := testContext(t)
	resp, err := c.Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(ctx, resp.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Defragment(ctx, c.Endpoints()[0]); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 10, 50} {
		b.Run(fmt.Sprint("records=", n), func(b *testing.B) {
			_, w, _ := newLedger(b, Options{})
			number := 0
			for b.Loop() {
				var batch Batch
				for range n {
					number++
					t := newTrial(number)
					t.Checkpoint = strings.Repeat("x", 1024-300)
					batch.PutTrial("id1", t)
				}
				if err := w.Commit(b.Context(), &batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
