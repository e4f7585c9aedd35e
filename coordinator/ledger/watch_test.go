package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

func (c Change) text() string {
	switch {
	case c.Reset:
		return "reset"
	case c.Deleted:
		return c.ID + " deleted"
	case c.Study != nil:
		return c.ID + " study"
	case c.Status != nil:
		return fmt.Sprint(c.ID, " at ", c.Status.Position)
	default:
		return fmt.Sprint(c.ID, " trial ", c.Trial.Number)
	}
}

// watch runs Watch until the test ends and passes its changes on.
func watch(t *testing.T, l *Ledger, id string, after int64) chan Change {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	changes, done := make(chan Change, 100), make(chan error, 1)
	go func() {
		done <- l.Watch(ctx, id, after, func(c Change) error {
			if c.Synced {
				return nil
			}
			changes <- c
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	})
	return changes
}

// expect takes as many changes as are wanted, and returns the last revision.
func expect(t *testing.T, changes <-chan Change, want ...string) int64 {
	t.Helper()
	var got []string
	var revision int64
	for range want {
		select {
		case c := <-changes:
			if c.Revision < revision {
				t.Errorf("revision %d after %d", c.Revision, revision)
			}
			got, revision = append(got, c.text()), c.Revision
		case <-time.After(20 * time.Second):
			t.Fatalf("after %q nothing came; want %q", got, want)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("changes (-want +got):\n%s", diff)
	}
	return revision
}

func commit1(t *testing.T, w *Writer, b *Batch) {
	t.Helper()
	if err := w.Commit(testContext(t), b); err != nil {
		t.Fatal(err)
	}
}

func TestWatchFromThePresentAndFromARevision(t *testing.T) {
	l, w, c := newLedger(t, Options{})
	create(t, w, "id1", "digits", 1)
	create(t, w, "id2", "letters", 0)
	all, one := watch(t, l, "", 0), watch(t, l, "id1", 0)
	expect(t, all, "reset", "id1 study", "id1 at 0", "id1 trial 1", "id2 study", "id2 at 0")
	revision := expect(t, one, "reset", "id1 study", "id1 at 0", "id1 trial 1")

	b := at("id1", 1)
	b.PutTrial("id1", newTrial(2))
	commit1(t, w, b)
	commit1(t, w, at("id2", 1))
	var d Batch
	d.DeleteStudy("id1", "digits")
	commit1(t, w, &d)
	expect(t, all, "id1 trial 2", "id1 at 1", "id2 at 1", "id1 deleted")
	expect(t, one, "id1 trial 2", "id1 at 1", "id1 deleted")
	expect(t, watch(t, l, "id1", revision), "id1 trial 2", "id1 at 1", "id1 deleted")

	if _, err := c.Compact(testContext(t), w.head); err != nil {
		t.Fatal(err)
	}
	expect(t, watch(t, l, "", revision), "reset", "id2 study", "id2 at 1")
}

func TestWatchEndsWithItsReceiver(t *testing.T) {
	l, w, _ := newLedger(t, Options{})
	create(t, w, "id1", "digits", 0)
	enough := errors.New("enough")
	if err := l.Watch(testContext(t), "", 0, func(Change) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("watch: %v; want what the receiver returned", err)
	}
}

// While the watcher is cut off, changes are made and their history compacted.
func TestWatchResyncsAfterACompaction(t *testing.T) {
	e := testenv.StartEtcd(t)
	proxy := testenv.StartProxy(t, e.URL)
	direct := testenv.EtcdClient(t, e.URL)
	writing := New(direct, Options{})
	w := lead(t, writing, direct)
	create(t, w, "id1", "digits", 0)
	changes := watch(t, New(testenv.EtcdClient(t, "http://"+proxy.Addr), Options{}), "", 0)
	expect(t, changes, "reset", "id1 study", "id1 at 0")
	commit1(t, w, at("id1", 1))
	expect(t, changes, "id1 at 1")

	proxy.Hold()
	proxy.Drop()
	for p := range int64(5) {
		commit1(t, w, at("id1", p+2))
	}
	if _, err := direct.Compact(testContext(t), w.head, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	proxy.Heal()
	expect(t, changes, "reset", "id1 study", "id1 at 6")
	commit1(t, w, at("id1", 7))
	expect(t, changes, "id1 at 7")
}
