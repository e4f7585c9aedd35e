package ledger

import "testing"

func TestHistory(t *testing.T) {
	_, c := startEtcd(t, 0)
	ctx := testContext(t)
	l := New(c, Options{})
	var revisions []int64
	for range 5 {
		resp, err := c.Put(ctx, "key", "value")
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, resp.Header.Revision)
	}
	want := func(oldest int64) {
		t.Helper()
		got, latest, err := l.History(ctx)
		if err != nil || got != oldest || latest != revisions[4] {
			t.Errorf("history from %d to %d (%v), want from %d to %d", got, latest, err, oldest, revisions[4])
		}
	}
	want(1)
	if _, err := c.Compact(ctx, revisions[2]); err != nil {
		t.Fatal(err)
	}
	want(revisions[2])
}
