package ledger

import (
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// A study's status is stored with or after all of its trials, whenever it was put.
func TestStatusesComeAfterTrials(t *testing.T) {
	var b Batch
	for _, id := range []string{"s", "t"} {
		b.PutStatus(id, &record.Status{})
		for n := range 2 * MaxOps {
			b.PutTrial(id, newTrial(n+1))
		}
	}
	ops, err := b.all(messaging.Shard)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * (2*MaxOps + 1); len(ops) != want {
		t.Errorf("%d operations, want %d", len(ops), want)
	}
	for i, o := range ops {
		if last := i >= len(ops)-2; strings.HasSuffix(o.Key, "/status") != last {
			t.Errorf("operation %d of %d is on %s", i, len(ops), o.Key)
		}
	}
}
