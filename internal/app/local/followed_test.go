package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	library "github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/study"
)

// program opens the study of a Go program, which ends with the test.
func program(t *testing.T, state string) *library.Study {
	t.Helper()
	space := library.NewSpace()
	space.Float("x", 0, 1)
	u, err := library.Minimize(space, library.Options{Name: "batches", State: state, Trials: 2, Algorithm: library.Algorithm{Name: "random"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

// Each change of a trial is seen while the program writes its file, and the watch ends with the study.
func TestJournalIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(t.TempDir(), "state")
		u := program(t, state)
		reader := local.Follow(state)
		seen := make(chan string)
		go func() {
			defer close(seen)
			for trial, err := range reader.WatchTrials(t.Context(), "batches", true) {
				if err != nil {
					t.Error(err)
					return
				}
				seen <- fmt.Sprintf("%d %s", trial.Number, trial.State)
			}
		}()
		for n := 1; n <= 2; n++ {
			trial, err := u.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got, want := <-seen, fmt.Sprintf("%d RUNNING", n); got != want {
				t.Errorf("saw %q, want %q", got, want)
			}
			if err := errors.Join(trial.Report(1, 7.5), u.Tell(trial, 1, nil)); err != nil {
				t.Fatal(err)
			}
			if got, want := <-seen, fmt.Sprintf("%d COMPLETED", n); got != want {
				t.Errorf("saw %q, want %q", got, want)
			}
			curve, err := reader.Measurements(t.Context(), "batches", n)
			if err != nil || len(curve.Series) != 1 || curve.Series[0].Points[0].Value != 7.5 {
				t.Errorf("the curve of trial %d is %+v, %v", n, curve, err)
			}
		}
		if more, open := <-seen; open {
			t.Errorf("after the end of the study, %q", more)
		}
	})
}

// The time of a study goes on while its program has the file open, and stands still while none has.
func TestJournalsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(t.TempDir(), "state")
		reader := local.Follow(state)
		ran := func() time.Duration {
			t.Helper()
			s, err := reader.Study(t.Context(), "batches")
			if err != nil {
				t.Fatal(err)
			}
			return view.Elapsed(s.Status, time.Now())
		}
		for run := 1; run <= 2; run++ {
			u := program(t, state)
			trial, err := u.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before := time.Duration(run-1) * time.Minute
			time.Sleep(30 * time.Second)
			if got := ran(); got < before+29*time.Second || got > before+31*time.Second {
				t.Errorf("in run %d, after %v and half a minute: %v", run, before, got)
			}
			time.Sleep(30 * time.Second)
			if err := errors.Join(u.Tell(trial, 1, nil), u.Close()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if got, want := ran(), before+time.Minute; got < want-time.Second || got > want+time.Second {
				t.Errorf("an hour after run %d: %v, want about %v", run, got, want)
			}
		}
	})
}

// A program that has begun another study in the same file has another one; damage is said.
func TestFollowedJournalIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		state, other := filepath.Join(dir, "state"), filepath.Join(dir, "other")
		program(t, state)
		program(t, other)
		reader := local.Follow(state)
		before, err := reader.Study(t.Context(), "batches")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(other, state); err != nil {
			t.Fatal(err)
		}
		after, err := reader.Study(t.Context(), "batches")
		if err != nil || after.Spec.ID == before.Spec.ID {
			t.Errorf("the study is %s as before, or %v", after.Spec.ID, err)
		}
		if _, err := reader.Study(t.Context(), before.Spec.ID); !errors.Is(err, study.ErrNotFound) {
			t.Errorf("the study of before: %v", err)
		}
		if err := os.WriteFile(state, []byte("something else"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Study(t.Context(), "batches"); err == nil {
			t.Error("a file that is something else shows a study")
		}
	})
}
