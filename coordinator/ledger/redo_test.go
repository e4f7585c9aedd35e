package ledger

import (
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// large is a batch that needs three transactions.
func large(id string) *Batch {
	b := at(id, 250)
	for i := 1; i <= 250; i++ {
		t := newTrial(i)
		t.Note = strings.Repeat("x", MaxBytes/250)
		b.PutTrial(id, t)
	}
	return b
}

// As many records as a commit may have are stored at one revision of etcd, so by one
// transaction: a reader sees all of them or none.
func TestManyRecordsAreOneTransaction(t *testing.T) {
	_, w, c := newLedger(t, Options{})
	create(t, w, "id1", "digits", 0)
	b := at("id1", 1)
	for i := 1; b.Len() < MaxCommit; i++ {
		b.PutTrial("id1", newTrial(i))
	}
	if err := w.Commit(testContext(t), b); err != nil {
		t.Fatal(err)
	}
	resp, err := c.Get(testContext(t), DefaultPrefix+studyDir("id1")+trialsDir, clientv3.WithPrefix())
	if err != nil || len(resp.Kvs) != MaxCommit-1 {
		t.Fatalf("%d trials, %v; want %d", len(resp.Kvs), err, MaxCommit-1)
	}
	for _, kv := range resp.Kvs {
		if kv.ModRevision != resp.Header.Revision {
			t.Fatalf("%s is of revision %d, the last commit is of %d", kv.Key, kv.ModRevision, resp.Header.Revision)
		}
	}
}

func redoLeft(t *testing.T, l *Ledger, c *clientv3.Client) int64 {
	t.Helper()
	resp, err := c.Get(testContext(t), l.redoDir(), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return resp.Count
}

func TestLargeBatch(t *testing.T) {
	l, w, c := newLedger(t, Options{})
	create(t, w, "id1", "digits", 0)
	if err := w.Commit(testContext(t), large("id1")); err != nil {
		t.Fatal(err)
	}
	snap, err := l.Load(testContext(t))
	if err != nil || len(snap.Studies[0].Trials) != 250 || snap.Studies[0].Status.Position != 250 {
		t.Fatalf("loaded %d trials, %v; want 250", len(snap.Studies[0].Trials), err)
	}
	if n := redoLeft(t, l, c); n != 0 {
		t.Errorf("%d chunks of the redo log are left", n)
	}
}

// A leader that dies before any transaction of a large batch leaves all of it or
// nothing, once the next one leads.
func TestLargeBatchIsWholeAfterADeath(t *testing.T) {
	l, w, c := newLedger(t, Options{})
	create(t, w, "id1", "digits", 0)
	died := errors.New("died")
	whole := 0
	for at := 0; ; at++ {
		n := at
		w.breakOff = func() error {
			if n--; n < 0 {
				return died
			}
			return nil
		}
		err := w.Commit(testContext(t), large("id1"))
		w = lead(t, l, c) // finishes, or cleans up
		snap, loadErr := l.Load(testContext(t))
		if loadErr != nil {
			t.Fatal(loadErr)
		}
		got, position := len(snap.Studies[0].Trials), snap.Studies[0].Status.Position
		if !(got == 0 && position == 0) && !(got == 250 && position == 250) {
			t.Fatalf("died before transaction %d: %d trials at position %d; want all or nothing", at, got, position)
		}
		if n := redoLeft(t, l, c); n != 0 {
			t.Fatalf("died before transaction %d: %d chunks are left", at, n)
		}
		if got == 250 {
			whole++
		}
		if err == nil {
			break
		}
		want := died
		if got == 250 {
			want = ErrUnknown // it was stored
		}
		if !errors.Is(err, want) {
			t.Errorf("died before transaction %d: %v; want %v", at, err, want)
		}
		var b Batch
		b.PutStatus("id1", &record.Status{State: study.Running})
		if _, err := c.Delete(testContext(t), DefaultPrefix+studyDir("id1")+trialsDir, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(testContext(t), &b); err != nil {
			t.Fatal(err)
		}
	}
	if whole < 2 {
		t.Errorf("the batch was whole %d times; want also after a death between its commit and its application", whole)
	}
}

func TestLargeStudyNeedsAFreeName(t *testing.T) {
	l, w, c := newLedger(t, Options{})
	create(t, w, "id1", "digits", 0)
	if err := w.Create(testContext(t), newStudy("id2", "digits"), large("id2")); !errors.Is(err, ErrNameTaken) {
		t.Fatalf("a large study of a taken name: %v; want ErrNameTaken", err)
	}
	w = lead(t, l, c)
	if n := redoLeft(t, l, c); n != 0 {
		t.Errorf("%d chunks of the refused batch are left for the next leader", n)
	}
	if err := w.Create(testContext(t), newStudy("id2", "letters"), large("id2")); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Trials(testContext(t), "id2", 1, 1000); err != nil || len(got) != 250 {
		t.Errorf("%d trials, %v; want 250", len(got), err)
	}
}
