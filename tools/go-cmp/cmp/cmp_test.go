package cmp

import (
	"strings"
	"testing"
)

// etcd compares the content of two buckets.
func TestDiff(t *testing.T) {
	a, b := map[string]string{"key": "old"}, map[string]string{"key": "new"}
	if got := Diff(a, map[string]string{"key": "old"}); got != "" {
		t.Errorf("equal maps differ: %s", got)
	}
	for name, other := range map[string]any{"a value": b, "a key": map[string]string{}, "a type": map[string]any{"key": "old"}} {
		if got := Diff(a, other); !strings.Contains(got, "old") {
			t.Errorf("maps that differ in %s: %q, want both", name, got)
		}
	}
	if got := Diff(a, b); !strings.Contains(got, "old") || !strings.Contains(got, "new") {
		t.Errorf("the difference is %q, want both maps", got)
	}
}
