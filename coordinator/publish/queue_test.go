package publish

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQueueHoldsEachKeyOnce(t *testing.T) {
	var q queue[string, int]
	for i, key := range []string{"b", "a", "b", "c", "a"} {
		q.add(key, i)
	}
	if q.len() != 3 {
		t.Errorf("%d keys, want 3", q.len())
	}
	if diff := cmp.Diff([]int{2, 4, 3}, q.takeAll()); diff != "" {
		t.Error(diff)
	}
	if q.len() != 0 || len(q.takeAll()) != 0 {
		t.Error("the queue is not empty after take")
	}
}
