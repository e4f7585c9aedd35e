package backend

import (
	"testing"
	"time"

	apiview "github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/testleader"
)

// While nobody leads, the time of a study stands still on the replicas that show it, and the next leader
// goes on from there.
func TestTimeStandsStillWithoutALeader(t *testing.T) {
	cluster := testleader.New()
	first := cluster.Start(t, "first")
	if err := first.Leading(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader := ledger.New(cluster.Etcd.Client("reader").Client, ledger.Options{})
	shown := func(by *coordinator.Coordinator) (elapsed, inAnHour time.Duration) {
		t.Helper()
		b, now := New(by, reader), time.Now()
		s, err := b.Study(t.Context(), "digits")
		if err != nil {
			t.Fatal(err)
		}
		listed, err := b.Studies(t.Context(), "", 10)
		if err != nil || len(listed) != 1 || listed[0].Status.Since != s.Status.Since {
			t.Fatalf("the list has %+v, %v", listed, err)
		}
		return apiview.Elapsed(s.Status, now), apiview.Elapsed(s.Status, now.Add(time.Hour))
	}
	if _, err := New(first.Coordinator, reader).Create(t.Context(), []byte(`{apiVersion: fantasia.dev/v1, kind: Study, metadata: {name: digits},
		spec: {objective: {metric: loss, direction: minimize}, parameters: [{name: x, type: float, min: 0, max: 1}], budget: {maxTrials: 9}}}`)); err != nil {
		t.Fatal(err)
	}
	if at, later := shown(first.Coordinator); later-at != time.Hour {
		t.Errorf("with a leader, it has run for %v, and in an hour for %v", at, later)
	}
	first.Stop()
	// What is read is what the first leader has stored, as if that had been an hour ago.
	stored, err := reader.Study(t.Context(), "digits")
	if err != nil || stored.Led || stored.Status.Counted.IsZero() {
		t.Fatalf("without a leader, the ledger has %+v, %v", stored, err)
	}
	b := New(first.Coordinator, reader)
	s, err := b.shown(t.Context(), stored)
	if err != nil || apiview.Elapsed(s.Status, time.Now()) > stored.Status.Ran+time.Minute {
		t.Errorf("without a leader: %v, %v", apiview.Elapsed(s.Status, time.Now()), err)
	}
	stored.Status.Counted = stored.Status.Counted.Add(-time.Hour)
	if s, err = b.shown(t.Context(), stored); err != nil || apiview.Elapsed(s.Status, time.Now()) > stored.Status.Ran+time.Minute {
		t.Errorf("an hour without a leader later: %v, %v", apiview.Elapsed(s.Status, time.Now()), err)
	}
	second := cluster.Start(t, "second")
	if err := second.Leading(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := reader.Study(t.Context(), "digits")
	if err != nil || !next.Led || !next.Status.Since.After(stored.Status.Since) {
		t.Errorf("the next leader has stored %+v, %v", next.Status, err)
	}
}
