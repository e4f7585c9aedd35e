package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

func TestBatchRefusesWhatCannotBeStored(t *testing.T) {
	for name, tc := range map[string]struct {
		put  func(b *Batch)
		want string
	}{
		"no id":    {func(b *Batch) { b.PutTrial("", newTrial(1)) }, `study id ""`},
		"slash":    {func(b *Batch) { b.PutStatus("a/b", &record.Status{}) }, `study id "a/b"`},
		"too long": {func(b *Batch) { b.PutStatus("s", &record.Status{Reason: strings.Repeat("x", MaxBytes)}) }, ErrTooLarge.Error()},
	} {
		var b Batch
		tc.put(&b)
		if _, err := b.all(messaging.Shard); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %q", name, err, tc.want)
		}
	}
	var b Batch
	b.PutModel("s", &record.Model{State: make([]byte, MaxBytes)})
	if _, err := b.all(messaging.Shard); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a model of %d bytes: %v; want ErrTooLarge", MaxBytes, err)
	}
}

func TestBatchHoldsCursorsOfItsShard(t *testing.T) {
	var b Batch
	b.PutCursor(messaging.StreamResult, messaging.Cursor{Sequence: 1})
	b.PutCursor(messaging.StreamResult, messaging.Cursor{Sequence: 2})
	ops, err := b.all("7")
	if err != nil || len(ops) != 1 || ops[0].Key != "cursors/7/RESULT" || !strings.Contains(string(ops[0].Value), `"sequence":2`) {
		t.Errorf("operations %v, %v; want the last cursor of shard 7", ops, err)
	}
}

// A batch carried out in any number of chunks leaves what carrying out each call
// by itself leaves, and no chunk breaks etcd's rules.
func TestBatchAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Batch
		want, got := map[string]string{}, map[string]string{}
		deleted := map[string]bool{}
		id := rapid.SampledFrom([]string{"a", "ab", "b"})
		for range rapid.IntRange(0, 60).Draw(t, "calls") {
			id := id.Draw(t, "id")
			if rapid.IntRange(0, 15).Draw(t, "kind") == 0 {
				b.DeleteStudy(id, "name-"+id)
				deleted[id] = true
				for key := range want {
					if strings.HasPrefix(key, "studies/"+id+"/") {
						delete(want, key)
					}
				}
				continue
			}
			trial := record.Trial{Number: rapid.IntRange(1, 5).Draw(t, "number"), Place: rapid.IntRange(0, 9).Draw(t, "value")}
			b.PutTrial(id, &trial)
			if !deleted[id] {
				want[fmt.Sprintf("studies/%s/trials/%08d", id, trial.Number)] = fmt.Sprintf(`"place":%d,`, trial.Place)
			}
		}
		ops, err := b.all(messaging.Shard)
		if err != nil {
			t.Fatal(err)
		}
		size, seen := 0, map[string]bool{}
		for _, part := range chunks(ops, rapid.IntRange(1, 9).Draw(t, "chunk")) {
			for _, o := range part {
				if seen[o.Key] {
					t.Fatalf("%s is there twice", o.Key)
				}
				seen[o.Key] = true
				size += o.size()
				carryOut(got, o)
			}
		}
		if size != b.bytes || len(seen) != b.Len() {
			t.Fatalf("%d operations of %d bytes; the batch counted %d of %d", len(seen), size, b.Len(), b.bytes)
		}
		if len(got) != len(want) {
			t.Fatalf("keys %v; want %v", got, want)
		}
		for key, value := range want {
			if !strings.Contains(got[key], value) {
				t.Fatalf("%s is %s; want %s in it", key, got[key], value)
			}
		}
	})
}

func carryOut(store map[string]string, o op) {
	if o.Value != nil {
		store[o.Key] = string(o.Value)
		return
	}
	for key := range store {
		if key == o.Key || o.End != "" && key >= o.Key && key < o.End {
			delete(store, key)
		}
	}
}

func TestChunksRespectBytes(t *testing.T) {
	big := op{Key: "k", Value: []byte(strings.Repeat("x", MaxBytes/2))}
	parts := chunks([]op{big, big, big}, 10)
	if len(parts) != 3 {
		t.Errorf("three halves of a transaction went into %d; want 3, since framing counts", len(parts))
	}
	if got := chunks(nil, 10); got != nil {
		t.Errorf("chunks of nothing: %v", got)
	}
}
