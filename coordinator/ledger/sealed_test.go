package ledger

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// allKinds fills a ledger with a record under every kind of key.
func allKinds(t *testing.T) (*Ledger, *Writer, *clientv3.Client) {
	t.Helper()
	l, w, c := newLedger(t, Options{})
	create(t, w, "id1", "digits", 2)
	live := curve.New(1)
	reports(live, 0, 10)
	changed := change(t, live, 1)
	var b Batch
	b.PutModel("id1", &record.Model{Request: 3, State: []byte("state")})
	b.PutCurve("id1", changed)
	b.PutCursor(messaging.StreamClaim, messaging.Cursor{Created: start, Sequence: 7})
	b.PutAside("1", &record.Aside{Study: "id1", Subject: "s", Raw: []byte("raw")})
	b.PutTraced(start)
	if err := w.Commit(testContext(t), &b); err != nil {
		t.Fatal(err)
	}
	w.restored = true
	if err := w.Raise(testContext(t), 1000); err != nil {
		t.Fatal(err)
	}
	return l, w, c
}

// Each key that the ledger writes has its seal, whatever kind of record it is. The leader's key,
// which package election seals, is the test's own here.
func TestEveryRecordIsSealed(t *testing.T) {
	l, w, c := allKinds(t)
	var large Batch
	for i := range MaxCommit + 1 {
		large.PutTrial("id2", newTrial(i+1))
	}
	died := errors.New("died")
	left := 3
	w.breakOff = func() error { // leaves a redo log
		if left--; left < 0 {
			return died
		}
		return nil
	}
	if err := w.Commit(testContext(t), &large); !errors.Is(err, died) {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	check := func() {
		resp, err := c.Get(testContext(t), DefaultPrefix, clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range resp.Kvs {
			if string(kv.Key) == l.LeaderKey() {
				continue
			}
			if _, err := seal.Open(string(kv.Key), kv.Value); err != nil {
				t.Errorf("%s: %v", kv.Key, err)
			}
			kind, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), DefaultPrefix), "/")
			kinds[kind] = true
		}
	}
	check()
	in, err := l.Import(testContext(t), Fence{Key: "nobody"})
	if err == nil {
		err = in.Put(testContext(t), "studies/id3/spec", []byte("{}"))
	}
	if err = errors.Join(err, in.flush(testContext(t))); err != nil {
		t.Fatal(err)
	}
	check()
	want := []string{"aside", "commits", "cursors", "curves", "epochs", "names", "redo", "restored", "studies", "traced"}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Errorf("the kinds of records are %v, want %v", got, want)
	}
}

// A flipped bit in any record is an error that names the record, or is told by a snapshot; it
// never is another value.
func TestDamagedRecords(t *testing.T) {
	l, _, c := allKinds(t)
	whole, err := l.Load(testContext(t))
	if err != nil || whole.Studies[0].Err != nil {
		t.Fatal(whole, err)
	}
	resp, err := c.Get(testContext(t), DefaultPrefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Kvs) < 12 {
		t.Fatalf("%d records, want every kind", len(resp.Kvs))
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, kv := range resp.Kvs {
		key := string(kv.Key)
		if key == l.LeaderKey() {
			continue
		}
		for range 3 {
			flipped := append([]byte{}, kv.Value...)
			flipped[random.IntN(len(flipped))] ^= 1 << random.IntN(8)
			if _, err := c.Put(testContext(t), key, string(flipped)); err != nil {
				t.Fatal(err)
			}
			if err := readKind(t, l, strings.TrimPrefix(key, DefaultPrefix)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v; want ErrCorrupt with the key", key, err)
			}
			if _, err := l.Export(testContext(t), func(int64) error { return nil }, func(string, []byte) error { return nil }); !errors.Is(err,
				ErrCorrupt) || !strings.Contains(err.Error(), key) {
				t.Errorf("export with a damaged %s: %v; want ErrCorrupt with the key", key, err)
			}
		}
		if _, err := c.Put(testContext(t), key, string(kv.Value)); err != nil {
			t.Fatal(err)
		}
	}
}

// readKind reads the record of a key as its reader does.
func readKind(t *testing.T, l *Ledger, key string) error {
	t.Helper()
	ctx := testContext(t)
	kind, _, _ := strings.Cut(key, "/")
	switch kind {
	case "studies":
		if strings.HasSuffix(key, headLeaf) {
			listed, err := l.List(ctx, "", 10)
			return errors.Join(err, listed[0].Err)
		}
		_, err := l.LoadStudy(ctx, "id1")
		return err
	case "curves":
		_, err := l.Curve(ctx, "id1", 1)
		return err
	case "names":
		_, err := l.ID(ctx, "digits")
		return err
	case "cursors":
		snap, err := l.Load(ctx)
		return errors.Join(append(snap.Lost, err)...)
	case "aside":
		_, _, err := l.AsidesOf(ctx, "id1")
		return err
	case "epochs":
		_, err := l.Behind(ctx, 1)
		return err
	case "commits", "traced": // only their own readers miss what is in them
		resp, err := l.client.Get(ctx, l.o.Prefix+key)
		if err == nil {
			_, err = open(resp.Kvs[0])
		}
		return err
	}
	return fmt.Errorf("no reader of %s", key)
}

// A damaged record of the last commit or a damaged position keeps nobody from leading: what
// they held is not needed, or is found again.
func TestLeadingWithDamagedPositions(t *testing.T) {
	l, _, c := allKinds(t)
	for _, key := range []string{l.commitKey(), l.cursorDir() + string(messaging.StreamClaim), l.tracedKey()} {
		if _, err := c.Put(testContext(t), key, "?"); err != nil {
			t.Fatal(err)
		}
	}
	w := lead(t, l, c)
	snap, err := l.Load(testContext(t))
	if err != nil || len(snap.Lost) != 1 || len(snap.Cursors) != 0 || snap.Studies[0].Err != nil {
		t.Errorf("loaded %+v, %v; want the study, and a lost position", snap, err)
	}
	if err := w.Commit(testContext(t), at("id1", 3)); err != nil {
		t.Errorf("commit after a damaged record of the last commit: %v", err)
	}
}

// A trial whose record is gone, or is an earlier one, does not fit the counts.
func TestCountsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*clientv3.Client, string) error{
		"gone": func(c *clientv3.Client, key string) error {
			_, err := c.Delete(t.Context(), key)
			return err
		},
		"of an earlier time": func(c *clientv3.Client, key string) error {
			trial := newTrial(2)
			trial.State = study.TrialQueued
			raw, err := marshal(trial)
			if err == nil {
				_, err = c.Do(t.Context(), put(key, raw))
			}
			return err
		},
	} {
		l, w, c := newLedger(t, Options{})
		create(t, w, "id1", "digits", 2)
		create(t, w, "id2", "letters", 2)
		if err := change(c, DefaultPrefix+trialKey("id1", 2)); err != nil {
			t.Fatal(err)
		}
		snap, err := l.Load(testContext(t))
		if err != nil || len(snap.Studies) != 2 || !errors.Is(snap.Studies[0].Err, ErrCorrupt) || snap.Studies[1].Err != nil {
			t.Errorf("trial 2 is %s: loaded %+v, %v; want the error of id1 alone", name, snap, err)
		}
		if _, err := l.LoadStudy(testContext(t), "id1"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "id1") {
			t.Errorf("trial 2 is %s: %v; want ErrCorrupt with the study", name, err)
		}
	}
}
