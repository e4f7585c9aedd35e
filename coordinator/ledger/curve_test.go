package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// reports adds a number of steps to a curve.
func reports(c *curve.Curve, from, to int64) {
	for step := from; step < to; step++ {
		c.Add(step, map[string]float64{"loss": float64(step)})
	}
}

// change is what a curve has to store.
func change(t *testing.T, c *curve.Curve, trial int) *curve.Change {
	t.Helper()
	change, ok := c.Changes(trial)
	if !ok {
		t.Fatal("nothing has changed")
	}
	return &change
}

func commitCurve(t *testing.T, w *Writer, changes ...*curve.Change) {
	t.Helper()
	var b Batch
	for i, c := range changes {
		if i == 0 {
			b.PutCurve("id1", c)
			continue
		}
		var next Batch
		next.PutCurve("id1", c)
		b.Add(&next)
	}
	b.PutCursor(messaging.StreamMetric, messaging.Cursor{Sequence: 9})
	if err := w.Commit(testContext(t), &b); err != nil {
		t.Fatal(err)
	}
}

// What is read is what was reported, however the changes are put together: those
// of one transaction must not overlap.
func TestCurvesAreStored(t *testing.T) {
	l, w, _ := newLedger(t, Options{PageSize: 2})
	create(t, w, "id1", "digits", 2)
	live := curve.New(1)
	check := func(what string) {
		t.Helper()
		stored, err := l.Curve(testContext(t), "id1", 1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(live.Series(), stored.Series()); diff != "" || stored.Attempt != live.Attempt {
			t.Fatalf("%s: attempt %d (-live +stored):\n%s", what, stored.Attempt, diff)
		}
	}
	reports(live, 0, 200)
	commitCurve(t, w, change(t, live, 1))
	check("a first attempt")
	reports(live, 200, 900)
	first := change(t, live, 1)
	reports(live, 900, 1200) // thinned: fewer segments
	commitCurve(t, w, first, change(t, live, 1))
	check("thinned")
	live = curve.New(2)
	reports(live, 0, 10)
	first = change(t, live, 1)
	reports(live, 10, 300) // beyond where the curve was cut
	commitCurve(t, w, first, change(t, live, 1))
	check("a second attempt")

	if c, err := l.Curve(testContext(t), "id1", 2); c != nil || err != nil {
		t.Errorf("a trial that reported nothing has %v, %v", c, err)
	}
	snap, err := l.Load(testContext(t))
	if err != nil || snap.Studies[0].Err != nil || len(snap.Studies[0].Trials) != 2 || snap.Cursors[messaging.StreamMetric].Sequence != 9 {
		t.Errorf("loaded %+v, %v", snap, err)
	}
}

// A study's curves go with it, also those that the same transaction would store.
func TestCurvesGoWithTheirStudy(t *testing.T) {
	l, w, c := newLedger(t, Options{})
	create(t, w, "id1", "digits", 1)
	live := curve.New(1)
	reports(live, 0, 100)
	commitCurve(t, w, change(t, live, 1))
	var b, late Batch
	reports(live, 100, 200)
	b.PutCurve("id1", change(t, live, 1))
	b.DeleteStudy("id1", "digits")
	reports(live, 200, 300)
	late.PutCurve("id1", change(t, live, 1))
	b.Add(&late)
	if err := w.Commit(testContext(t), &b); err != nil {
		t.Fatal(err)
	}
	resp, err := c.Get(testContext(t), l.o.Prefix+curvesDir)
	if err != nil || resp.Count != 0 {
		t.Errorf("%d segments are left, %v", resp.Count, err)
	}
}

func TestACurveThatCannotBeRead(t *testing.T) {
	l, _, c := newLedger(t, Options{})
	for n, data := range []string{"{", `{"attempt":1,"series":[]}`} {
		if _, err := c.Put(testContext(t), l.o.Prefix+segmentKey("id1", n, n), data); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Curve(testContext(t), "id1", n); !errors.Is(err, ErrCorrupt) {
			t.Errorf("trial %d: error is %v", n, err)
		}
	}
}

// Whoever watches gets what is stored, then what comes, and at the end the rest.
func TestWatchCurves(t *testing.T) {
	l, w, _ := newLedger(t, Options{PageSize: 1})
	create(t, w, "id1", "digits", 1)
	live := curve.New(1)
	reports(live, 0, 150)
	commitCurve(t, w, change(t, live, 1))
	flush, seen, done := make(chan struct{}), make(chan int64), make(chan error)
	go func() {
		last := int64(-1)
		done <- l.WatchCurves(testContext(t), "id1", true, flush, func(r curve.Reported) error {
			for _, p := range r.Series[0].Points {
				if p.Step <= last {
					continue // again
				}
				if p.Step != last+1 || r.Trial != 1 || r.Attempt != 1 {
					return fmt.Errorf("step %d after %d, of trial %d, attempt %d", p.Step, last, r.Trial, r.Attempt)
				}
				last = p.Step
				seen <- last
			}
			return nil
		})
	}()
	until := func(step int64) {
		t.Helper()
		for {
			select {
			case got := <-seen:
				if got == step {
					return
				}
			case err := <-done:
				t.Fatalf("the watch ended before step %d: %v", step, err)
			}
		}
	}
	until(149)
	reports(live, 150, 160)
	commitCurve(t, w, change(t, live, 1))
	until(159)
	reports(live, 160, 170)
	commitCurve(t, w, change(t, live, 1))
	close(flush)
	until(169)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := l.WatchCurves(ctx, "id1", false, nil, func(curve.Reported) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a watch that was cancelled ends with %v", err)
	}
}

// TestCurvesOfAStudyThatStopsTrialsEarly checks that the curves are loaded with a study
// whose rule must know them, and not with another one.
func TestCurvesOfAStudyThatStopsTrialsEarly(t *testing.T) {
	for _, early := range []*study.EarlyStopping{nil, {Name: "median", Metric: "loss"}} {
		l, w, _ := newLedger(t, Options{PageSize: 2})
		s := newStudy("id1", "early")
		s.Definition.Spec.EarlyStopping = early
		if err := w.Create(testContext(t), s, at("id1", 1)); err != nil {
			t.Fatal(err)
		}
		var all []*curve.Change
		for trial := range 3 {
			c := curve.New(1)
			reports(c, 1, int64(50*(trial+1)+1))
			all = append(all, change(t, c, trial+1))
		}
		commitCurve(t, w, all...)
		stored, err := l.LoadStudy(testContext(t), "id1")
		if err != nil {
			t.Fatal(err)
		}
		want := 3
		if early == nil {
			want = 0
		}
		if len(stored.Curves) != want {
			t.Fatalf("%v: %d curves are loaded, want %d", early, len(stored.Curves), want)
		}
		for trial, c := range stored.Curves {
			if got := len(c.Series()[0].Points); got != 50*trial {
				t.Errorf("the curve of trial %d has %d points, want %d", trial, got, 50*trial)
			}
		}
	}
}

// Of a study that stops no trial early, only the curves of open trials are loaded, since their next attempts may
// continue them. Clients tell the values of their trials themselves.
func TestCurvesOfOpenTrials(t *testing.T) {
	for _, clients := range []bool{false, true} {
		l, w, _ := newLedger(t, Options{})
		s := newStudy("id1", "open")
		if !clients {
			s.Definition.Spec.Trial.Command = []string{"true"}
		}
		b := &Batch{}
		b.PutStatus("id1", &record.Status{State: study.Running, Trials: 4, Counts: record.Counts{Pending: 1, Running: 2, Completed: 1}})
		for n, state := range []study.TrialState{study.TrialCompleted, study.TrialRunning, study.TrialPending, study.TrialRunning} {
			trial := newTrial(n + 1)
			if trial.State = state; n == 2 {
				trial.Attempts = nil
			}
			b.PutTrial("id1", trial)
		}
		if err := w.Create(testContext(t), s, b); err != nil {
			t.Fatal(err)
		}
		var all []*curve.Change
		for trial := range 3 { // the fourth one has reported nothing
			c := curve.New(1)
			reports(c, 1, 10)
			all = append(all, change(t, c, trial+1))
		}
		commitCurve(t, w, all...)
		stored, err := l.LoadStudy(testContext(t), "id1")
		if err != nil {
			t.Fatal(err)
		}
		if want := !clients; (stored.Curves[2] != nil) != want || len(stored.Curves) > 1 {
			t.Errorf("by clients %v: %d curves are loaded, that of trial 2: %v", clients, len(stored.Curves), stored.Curves[2] != nil)
		}
	}
}
