package memetcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
)

// suite is what an etcd does that Fantasia relies on. The keys of a case begin with dir, and
// nobody else writes.
var suite = map[string]func(t *testing.T, c *clientv3.Client, dir string){
	"revisions":     testRevisions,
	"ranges":        testRanges,
	"history":       testHistory,
	"transactions":  testTransactions,
	"refusals":      testRefusals,
	"leases":        testLeases,
	"watches":       testWatches,
	"compactions":   testCompactions,
	"watched past":  testWatchedPast,
	"several kinds": testSeveralWatches,
	"values before": testValuesBefore,
}

// TestConformance holds the etcd in memory to what a real one does.
func TestConformance(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	real, err := embedded.StartEtcd(ctx, embedded.EtcdOptions{Dir: t.TempDir(), History: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := real.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(suite)) {
		test := suite[name]
		t.Run("real/"+name, func(t *testing.T) {
			c, err := real.Client()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			test(t, c, t.Name()+"/")
		})
		t.Run("memory/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(Options{}).Client("tester")
				defer c.Close()
				test(t, c.Client, t.Name()+"/")
			})
		})
	}
}

// must ends a test if a call has failed.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// text writes down what an answer says, with revisions counted from base.
func text(kvs []*mvccpb.KeyValue, base int64) string {
	var out []string
	for _, kv := range kvs {
		_, name, _ := cutLast(string(kv.Key))
		out = append(out, fmt.Sprintf("%s=%s(%d,%d,%d)", name, kv.Value, kv.CreateRevision-base, kv.ModRevision-base, kv.Version))
	}
	return strings.Join(out, " ")
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	return s[:i+1], s[i+1:], i >= 0
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// base returns the present revision.
func base(t *testing.T, c *clientv3.Client) int64 {
	t.Helper()
	return must[*clientv3.GetResponse](t)(c.Get(t.Context(), "nothing")).Header.Revision
}

func testRevisions(t *testing.T, c *clientv3.Client, dir string) {
	ctx := t.Context()
	b := base(t, c)
	put := must[*clientv3.PutResponse](t)
	equal(t, "a put", put(c.Put(ctx, dir+"a", "1")).Header.Revision-b, 1)
	equal(t, "a second put", put(c.Put(ctx, dir+"a", "2")).Header.Revision-b, 2)
	put(c.Put(ctx, dir+"b", "3"))
	get := must[*clientv3.GetResponse](t)(c.Get(ctx, dir+"a"))
	equal(t, "the key", text(get.Kvs, b), "a=2(1,2,2)")
	equal(t, "the revision of a read", get.Header.Revision-b, 3)
	del := must[*clientv3.DeleteResponse](t)
	none := del(c.Delete(ctx, dir+"c"))
	equal(t, "deleted of nothing", none.Deleted, 0)
	equal(t, "a deletion of nothing", none.Header.Revision-b, 3)
	some := del(c.Delete(ctx, dir+"a", clientv3.WithRange(dir+"c")))
	equal(t, "deleted of two", some.Deleted, 2)
	equal(t, "one revision for all that a call deletes", some.Header.Revision-b, 4)
	put(c.Put(ctx, dir+"a", "4"))
	equal(t, "a key that came again", text(must[*clientv3.GetResponse](t)(c.Get(ctx, dir+"a")).Kvs, b), "a=4(5,5,1)")
}

// testValuesBefore covers the conditions on values, and the answers that have earlier values.
func testValuesBefore(t *testing.T, c *clientv3.Client, dir string) {
	ctx := t.Context()
	b := base(t, c)
	put := must[*clientv3.PutResponse](t)
	put(c.Put(ctx, dir+"b", "1"))
	put(c.Put(ctx, dir+"a", "2"))
	equal(t, "before a put", text([]*mvccpb.KeyValue{put(c.Put(ctx, dir+"b", "3", clientv3.WithPrevKV())).PrevKv}, b), "b=1(1,1,1)")
	get := must[*clientv3.GetResponse](t)
	equal(t, "by the last change",
		text(get(c.Get(ctx, dir, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))).Kvs, b),
		"b=3(1,3,2) a=2(2,2,1)")
	txn := must[*clientv3.TxnResponse](t)
	equal(t, "another value", txn(c.Txn(ctx).If(clientv3.Compare(clientv3.Value(dir+"a"), "=", "1")).Commit()).Succeeded, false)
	equal(t, "a later change", txn(c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(dir+"b"), ">", b+2)).Commit()).Succeeded, true)
	equal(t, "before a deletion",
		text(must[*clientv3.DeleteResponse](t)(c.Delete(ctx, dir, clientv3.WithPrefix(), clientv3.WithPrevKV())).PrevKvs, b),
		"a=2(2,2,1) b=3(1,3,2)")
}

func testRanges(t *testing.T, c *clientv3.Client, dir string) {
	ctx := t.Context()
	b := base(t, c)
	for i, k := range []string{"d", "b", "a", "c"} {
		must[*clientv3.PutResponse](t)(c.Put(ctx, dir+k, fmt.Sprint(i)))
	}
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir, "itself"))
	for _, tt := range []struct {
		name    string
		key     string
		options []clientv3.OpOption
		want    string
		count   int64
		more    bool
	}{
		{"a key", "b", nil, "b=1(2,2,1)", 1, false},
		{"no key", "x", nil, "", 0, false},
		{"a prefix", "", []clientv3.OpOption{clientv3.WithPrefix()}, "=itself(5,5,1) a=2(3,3,1) b=1(2,2,1) c=3(4,4,1) d=0(1,1,1)", 5, false},
		{"a range", "a", []clientv3.OpOption{clientv3.WithRange(dir + "c")}, "a=2(3,3,1) b=1(2,2,1)", 2, false},
		{"an empty range", "c", []clientv3.OpOption{clientv3.WithRange(dir + "b")}, "", 0, false},
		{"a page", "", []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithLimit(2)}, "=itself(5,5,1) a=2(3,3,1)", 5, true},
		{"the last page", "c", []clientv3.OpOption{clientv3.WithRange(dir + "z"), clientv3.WithLimit(2)}, "c=3(4,4,1) d=0(1,1,1)", 2, false},
		{"keys only", "a", []clientv3.OpOption{clientv3.WithRange(dir + "c"), clientv3.WithKeysOnly()}, "a=(3,3,1) b=(2,2,1)", 2, false},
		{"a count", "", []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithCountOnly()}, "", 5, false},
		{"the last", "", []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithLimit(1),
			clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend)}, "d=0(1,1,1)", 5, true},
		{"the newer", "", []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithMinModRev(b + 3)}, "=itself(5,5,1) a=2(3,3,1) c=3(4,4,1)", 5,
			false},
	} {
		got := must[*clientv3.GetResponse](t)(c.Get(ctx, dir+tt.key, tt.options...))
		equal(t, tt.name, text(got.Kvs, b), tt.want)
		equal(t, tt.name+": count", got.Count, tt.count)
		equal(t, tt.name+": more", got.More, tt.more)
	}
}

func testHistory(t *testing.T, c *clientv3.Client, dir string) {
	ctx := t.Context()
	b := base(t, c)
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir+"a", "1"))
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir+"b", "1"))
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir+"a", "2"))
	must[*clientv3.DeleteResponse](t)(c.Delete(ctx, dir+"b"))
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir+"b", "3"))
	for i, want := range []string{"", "a=1(1,1,1)", "a=1(1,1,1) b=1(2,2,1)", "a=2(1,3,2) b=1(2,2,1)", "a=2(1,3,2)", "a=2(1,3,2) b=3(5,5,1)"} {
		got := must[*clientv3.GetResponse](t)(c.Get(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+int64(i))))
		equal(t, fmt.Sprint("revision ", i), text(got.Kvs, b), want)
		equal(t, "the revision of the header", got.Header.Revision, b+5)
	}
	if _, err := c.Get(ctx, dir, clientv3.WithRev(b+6)); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("a revision that is not yet: %v", err)
	}
}

func testTransactions(t *testing.T, c *clientv3.Client, dir string) {
	ctx := t.Context()
	b := base(t, c)
	txn := must[*clientv3.TxnResponse](t)
	free := clientv3.Compare(clientv3.CreateRevision(dir+"a"), "=", 0)
	first := txn(c.Txn(ctx).If(free).Then(clientv3.OpPut(dir+"a", "1"), clientv3.OpPut(dir+"b", "1"),
		clientv3.OpGet(dir, clientv3.WithPrefix())).Commit())
	equal(t, "a free key", first.Succeeded, true)
	equal(t, "one revision for all", first.Header.Revision-b, 1)
	equal(t, "reads its own writes", text(first.Responses[2].GetResponseRange().Kvs, b), "a=1(1,1,1) b=1(1,1,1)")
	second := txn(c.Txn(ctx).If(free).Then(clientv3.OpPut(dir+"a", "2")).Else(clientv3.OpGet(dir+"a"), clientv3.OpGet(dir+"x")).Commit())
	equal(t, "a key that is taken", second.Succeeded, false)
	equal(t, "the revision of a transaction that reads", second.Header.Revision-b, 1)
	equal(t, "the other branch", text(second.Responses[0].GetResponseRange().Kvs, b), "a=1(1,1,1)")
	equal(t, "its count", second.Responses[1].GetResponseRange().Count, 0)
	unchanged := clientv3.Compare(clientv3.ModRevision(dir+"a"), "=", b+1)
	third := txn(c.Txn(ctx).If(unchanged, free).Then(clientv3.OpPut(dir+"a", "3")).Commit())
	equal(t, "all must hold", third.Succeeded, false)
	fourth := txn(c.Txn(ctx).If(unchanged).Then(clientv3.OpDelete(dir+"b"), clientv3.OpPut(dir+"a", "4"),
		clientv3.OpDelete(dir+"c", clientv3.WithRange(dir+"d"))).Commit())
	equal(t, "an unchanged key", fourth.Succeeded, true)
	equal(t, "deleted", fourth.Responses[0].GetResponseDeleteRange().Deleted, 1)
	equal(t, "deleted of nothing", fourth.Responses[2].GetResponseDeleteRange().Deleted, 0)
	past := txn(c.Txn(ctx).Then(clientv3.OpGet(dir+"b", clientv3.WithRev(b+1)),
		clientv3.OpGet(dir, clientv3.WithPrefix(), clientv3.WithCountOnly())).Commit())
	equal(t, "a read of the past", text(past.Responses[0].GetResponseRange().Kvs, b), "b=1(1,1,1)")
	equal(t, "a count", past.Responses[1].GetResponseRange().Count, 1)
	equal(t, "what is left", text(must[*clientv3.GetResponse](t)(c.Get(ctx, dir, clientv3.WithPrefix())).Kvs, b), "a=4(1,2,2)")
	outer := txn(c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(dir+"a"), "=", b+2)).Then(
		clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(dir+"n", "5"), clientv3.OpDelete(dir + "a")}, nil),
		clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(dir+"o", "5")}, nil), clientv3.OpPut(dir+"p", "5")).Commit())
	equal(t, "a transaction in a transaction", outer.Responses[0].GetResponseTxn().Succeeded, true)
	equal(t, "deleted in it", outer.Responses[0].GetResponseTxn().Responses[1].GetResponseDeleteRange().Deleted, 1)
	equal(t, "one revision for all of them", text(must[*clientv3.GetResponse](t)(c.Get(ctx, dir, clientv3.WithPrefix())).Kvs, b),
		"n=5(3,3,1) o=5(3,3,1) p=5(3,3,1)")
	always := txn(c.Txn(ctx).Then(clientv3.OpDelete(dir + "none")).Commit())
	equal(t, "a transaction that changes nothing", always.Header.Revision-b, 3)
}

func testRefusals(t *testing.T, c *clientv3.Client, dir string) {
	ctx := t.Context()
	b := base(t, c)
	var many, most []clientv3.Op
	for i := range 129 {
		many = append(many, clientv3.OpPut(fmt.Sprint(dir, "many", i), ""))
	}
	most = many[:128]
	large := strings.Repeat("x", 800<<10)
	for _, tt := range []struct {
		name string
		ops  []clientv3.Op
		want error
	}{
		{"a key that is put twice", []clientv3.Op{clientv3.OpPut(dir+"a", "1"), clientv3.OpPut(dir+"a", "2")}, rpctypes.ErrDuplicateKey},
		{"a key that is deleted and put", []clientv3.Op{clientv3.OpDelete(dir + "a"), clientv3.OpPut(dir+"a", "2")}, rpctypes.ErrDuplicateKey},
		{"a key that is put and deleted in a range", []clientv3.Op{clientv3.OpPut(dir+"a", "2"), clientv3.OpDelete(dir, clientv3.WithPrefix())},
			rpctypes.ErrDuplicateKey},
		{"an empty key", []clientv3.Op{clientv3.OpPut("", "2")}, rpctypes.ErrEmptyKey},
		{"too many operations", many, rpctypes.ErrTooManyOps},
		{"too many operations in a transaction inside", []clientv3.Op{clientv3.OpTxn(nil, most, nil)}, rpctypes.ErrTooManyOps},
		{"a key that is put twice, once inside", []clientv3.Op{clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(dir+"a", "1")}, nil),
			clientv3.OpPut(dir+"a", "2")}, rpctypes.ErrDuplicateKey},
		{"too many bytes", []clientv3.Op{clientv3.OpPut(dir+"a", large), clientv3.OpPut(dir+"b", large)}, rpctypes.ErrRequestTooLarge},
		{"no such lease", []clientv3.Op{clientv3.OpPut(dir+"b", "1"), clientv3.OpPut(dir+"a", "2", clientv3.WithLease(4711))},
			rpctypes.ErrLeaseNotFound},
		{"a revision that is not yet", []clientv3.Op{clientv3.OpPut(dir+"a", "2"), clientv3.OpGet(dir+"a", clientv3.WithRev(b+1000))},
			rpctypes.ErrFutureRev},
	} {
		if _, err := c.Txn(ctx).Then(tt.ops...).Commit(); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, err := c.Put(ctx, dir+"a", "1", clientv3.WithLease(4711)); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("a put under no such lease: %v", err)
	}
	if _, err := c.Put(ctx, "", "1"); !errors.Is(err, rpctypes.ErrEmptyKey) {
		t.Errorf("a put of an empty key: %v", err)
	}
	equal(t, "the revision after all that was refused", base(t, c), b)
	both := must[*clientv3.TxnResponse](t)(c.Txn(ctx).Then(clientv3.OpDelete(dir, clientv3.WithPrefix()), clientv3.OpDelete(dir+"a")).Commit())
	equal(t, "deletions may overlap", both.Succeeded, true)
	must[*clientv3.TxnResponse](t)(c.Txn(ctx).Then(most...).Commit())
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Get(ended, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

func testLeases(t *testing.T, c *clientv3.Client, dir string) {
	ctx := t.Context()
	grant := must[*clientv3.LeaseGrantResponse](t)
	kept, expiring, revoked := grant(c.Grant(ctx, 2)), grant(c.Grant(ctx, 2)), grant(c.Grant(ctx, 60))
	equal(t, "the time to live", kept.TTL, 2)
	begun := time.Now()
	for i, l := range []*clientv3.LeaseGrantResponse{kept, expiring, revoked} {
		must[*clientv3.PutResponse](t)(c.Put(ctx, fmt.Sprint(dir, i), "", clientv3.WithLease(l.ID)))
		must[*clientv3.PutResponse](t)(c.Put(ctx, fmt.Sprint(dir, i, "again"), "", clientv3.WithLease(l.ID)))
	}
	if len(must[*clientv3.GetResponse](t)(c.Get(ctx, dir, clientv3.WithPrefix())).Kvs) != 6 {
		t.Fatal("keys are missing")
	}
	b := base(t, c)
	deleted := c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+1), clientv3.WithFilterPut())
	must[*clientv3.LeaseRevokeResponse](t)(c.Revoke(ctx, revoked.ID))
	got := <-deleted
	equal(t, "keys of a lease that was revoked", len(got.Events), 2)
	equal(t, "one revision for a lease's end", got.Events[0].Kv.ModRevision, got.Events[1].Kv.ModRevision)
	if _, err := c.Revoke(ctx, revoked.ID); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("revoked again: %v", err)
	}
	// A key that was put without its lease stays.
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir+"1again", "stays"))
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for gone := false; !gone; {
		select {
		case got := <-deleted:
			equal(t, "keys of a lease that has expired", len(got.Events), 1)
			equal(t, "that key", string(got.Events[0].Kv.Key), dir+"1")
			gone = true
		case <-tick.C:
			resp := must[*clientv3.LeaseKeepAliveResponse](t)(c.KeepAliveOnce(ctx, kept.ID))
			equal(t, "the renewed time to live", resp.TTL, 2)
		}
	}
	if d := time.Since(begun); d < 2*time.Second {
		t.Errorf("the lease has expired after %v", d)
	}
	equal(t, "keys that are left", len(must[*clientv3.GetResponse](t)(c.Get(ctx, dir, clientv3.WithPrefix())).Kvs), 3)
	if _, err := c.KeepAliveOnce(ctx, expiring.ID); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("a lease that has expired was renewed: %v", err)
	}
	must[*clientv3.LeaseRevokeResponse](t)(c.Revoke(ctx, kept.ID))
}

// events reads changes from a watch, a line for each revision.
func events(t *testing.T, changes clientv3.WatchChan, b int64, n int) string {
	t.Helper()
	var out []string
	last := int64(0)
	for n > 0 {
		resp := <-changes
		if err := resp.Err(); err != nil || len(resp.Events) == 0 {
			t.Fatalf("the watch ended with %+v: %v, after %q", resp, err, out)
		}
		for _, e := range resp.Events {
			_, name, _ := cutLast(string(e.Kv.Key))
			line := fmt.Sprintf("%s=%s", name, e.Kv.Value)
			if e.Type == mvccpb.Event_DELETE {
				line = "-" + name
			}
			if e.Kv.ModRevision != last {
				line = fmt.Sprintf("| %d %s", e.Kv.ModRevision-b, line)
			}
			last = e.Kv.ModRevision
			out = append(out, line)
			n--
		}
	}
	return strings.Join(out, " ")
}

func change(t *testing.T, c *clientv3.Client, dir string) {
	t.Helper()
	ctx := t.Context()
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir+"a", "1"))
	must[*clientv3.TxnResponse](t)(c.Txn(ctx).Then(clientv3.OpPut(dir+"b", "2"), clientv3.OpDelete(dir+"a"),
		clientv3.OpPut(dir+"c", "2")).Commit())
	must[*clientv3.DeleteResponse](t)(c.Delete(ctx, dir, clientv3.WithPrefix()))
}

const changed = "| 1 a=1 | 2 b=2 -a c=2 | 3 -b -c"

func testWatches(t *testing.T, c *clientv3.Client, dir string) {
	b := base(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+1))
	change(t, c, dir)
	equal(t, "what is watched", events(t, changes, b, 6), changed)
	cancel()
	if resp, open := <-changes; open {
		t.Errorf("after its context has ended the watch says %+v", resp)
	}
}

func testWatchedPast(t *testing.T, c *clientv3.Client, dir string) {
	b := base(t, c)
	change(t, c, dir)
	must[*clientv3.PutResponse](t)(c.Put(t.Context(), dir+"d", "4"))
	equal(t, "from the beginning", events(t, c.Watch(t.Context(), dir, clientv3.WithPrefix(), clientv3.WithRev(b+1)), b, 7),
		changed+" | 4 d=4")
	equal(t, "from the middle", events(t, c.Watch(t.Context(), dir, clientv3.WithPrefix(), clientv3.WithRev(b+3)), b, 3), "| 3 -b -c | 4 d=4")
	future := c.Watch(t.Context(), dir, clientv3.WithPrefix(), clientv3.WithRev(b+6))
	must[*clientv3.PutResponse](t)(c.Put(t.Context(), dir+"e", "5"))
	must[*clientv3.PutResponse](t)(c.Put(t.Context(), dir+"f", "6"))
	equal(t, "from what is not yet", events(t, future, b, 1), "| 6 f=6")
}

func testSeveralWatches(t *testing.T, c *clientv3.Client, dir string) {
	b := base(t, c)
	ctx := clientv3.WithRequireLeader(t.Context())
	one := c.Watch(ctx, dir+"b", clientv3.WithRev(b+1))
	gone, cancel := context.WithCancel(ctx)
	other := c.Watch(gone, dir+"c", clientv3.WithRev(b+1), clientv3.WithProgressNotify())
	deletions := c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+1), clientv3.WithFilterPut())
	puts := c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+1), clientv3.WithFilterDelete())
	change(t, c, dir)
	equal(t, "one key", events(t, one, b, 2), "| 2 b=2 | 3 -b")
	equal(t, "another key", events(t, other, b, 2), "| 2 c=2 | 3 -c")
	equal(t, "deletions", events(t, deletions, b, 3), "| 2 -a | 3 -b -c")
	equal(t, "puts", events(t, puts, b, 3), "| 1 a=1 | 2 b=2 c=2")
	cancel()
	if resp, open := <-other; open {
		t.Errorf("after its context has ended the watch says %+v", resp)
	}
	must[*clientv3.PutResponse](t)(c.Put(t.Context(), dir+"b", "4"))
	equal(t, "one key, later", events(t, one, b, 1), "| 4 b=4")
}

func testCompactions(t *testing.T, c *clientv3.Client, dir string) {
	ctx := t.Context()
	b := base(t, c)
	change(t, c, dir)
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir+"d", "4"))
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir+"d", "5"))
	following := c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+5))
	equal(t, "a watch before the compaction", events(t, following, b, 1), "| 5 d=5")
	must[*clientv3.CompactResponse](t)(c.Compact(ctx, b+4))
	if _, err := c.Compact(ctx, b+4); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("compacted again: %v", err)
	}
	if _, err := c.Compact(ctx, b+1000); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("compacted what is not yet: %v", err)
	}
	for rev, want := range map[int64]string{4: "d=4(4,4,1)", 5: "d=5(4,5,2)"} {
		got := must[*clientv3.GetResponse](t)(c.Get(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+rev)))
		equal(t, fmt.Sprint("revision ", rev), text(got.Kvs, b), want)
	}
	if _, err := c.Get(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+3)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a read of what was compacted: %v", err)
	}
	if _, err := c.Txn(ctx).Then(clientv3.OpGet(dir, clientv3.WithRev(b+3)), clientv3.OpPut(dir+"x", "")).Commit(); !errors.Is(err,
		rpctypes.ErrCompacted) {
		t.Errorf("a transaction that reads what was compacted: %v", err)
	}
	resp := <-c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+1))
	equal(t, "what a watch of the past is told", resp.CompactRevision, b+4)
	if !errors.Is(resp.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watch of what was compacted: %v", resp.Err())
	}
	equal(t, "a watch of what is left", events(t, c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(b+4)), b, 2), "| 4 d=4 | 5 d=5")
	must[*clientv3.PutResponse](t)(c.Put(ctx, dir+"d", "6"))
	equal(t, "a watch after the compaction", events(t, following, b, 1), "| 6 d=6")
}
