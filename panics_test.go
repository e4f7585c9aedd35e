package fantasia_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/study"
)

// recovered returns what f panics with; nil if it returns.
func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// A panic of an evaluation reaches the goroutine that called Run, after the others have ended and what they found is
// in the file. Its trial has failed, and the study can go on.
func TestPanicOfAnEvaluation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "study")
	s := fantasia.NewSpace()
	x := s.Float("x", 0, 1)
	u, err := fantasia.Minimize(s, fantasia.Options{Trials: 8, Seed: 1, Algorithm: random, Parallel: 2, State: path})
	if err != nil {
		t.Fatal(err)
	}
	second, other := make(chan struct{}), 0
	run := func() {
		err = u.Run(t.Context(), func(ctx context.Context, trial *fantasia.Trial) (float64, error) {
			switch trial.Number() {
			case 1: // it ends after the other one has panicked
				close(second)
				<-ctx.Done()
				other = trial.Number()
				return x.Of(trial), nil
			case 2:
				<-second
				panic(io.ErrUnexpectedEOF)
			}
			return x.Of(trial), nil
		})
	}
	p, ok := recovered(run).(*fantasia.PanicError)
	if !ok || p.Trial != 2 || !errors.Is(p, io.ErrUnexpectedEOF) || !strings.Contains(string(p.Stack), "TestPanicOfAnEvaluation") {
		t.Fatalf("Run panicked with %v, want a PanicError of trial 2 with the evaluation's stack", p)
	}
	for r, err := range u.Trials() {
		if r.Number == 1 && r.State != study.TrialCompleted || err != nil || other != 1 {
			t.Errorf("trial %d is %s, %v; want what it found while Run waited for it", r.Number, r.State, err)
		}
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if u, err = fantasia.Minimize(s, fantasia.Options{Trials: 8, Seed: 1, Algorithm: random, Parallel: 2, State: path}); err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if run(); err != nil {
		t.Fatalf("the next Run: %v", err)
	}
	for r, err := range u.Trials() {
		if want := r.Number == 2; err != nil || (r.State == study.TrialFailed) != want ||
			want && !strings.Contains(r.Failure, "panicked: unexpected EOF") {
			t.Errorf("trial %d is %s, %q, %v", r.Number, r.State, r.Failure, err)
		}
	}
}

// An evaluation that ends its goroutine has failed. The slot goes on, and Run says so.
func TestGoexitOfAnEvaluation(t *testing.T) {
	s := fantasia.NewSpace()
	x := s.Float("x", 0, 1)
	u, err := fantasia.Minimize(s, fantasia.Options{Trials: 5, Seed: 1, Algorithm: random})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	done := 0
	err = u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		if done++; trial.Number() == 1 {
			runtime.Goexit()
		}
		return x.Of(trial), nil
	})
	if done != 5 || err == nil || !strings.Contains(err.Error(), "trial 1 has failed") || !strings.Contains(err.Error(), "Goexit") {
		t.Errorf("%d of 5 trials, and Run returned %v", done, err)
	}
}

// A panic of a function of the user's reaches the caller, and leaves no lock behind.
func TestPanicsOfOtherFunctions(t *testing.T) {
	s := fantasia.NewSpace()
	x := s.Float("x", 0, 1)
	bad := false
	s.Require("x must be calm", func(fantasia.Point) bool {
		if bad {
			panic("constraint")
		}
		return true
	}, x)
	told, fail := 0, true
	u, err := fantasia.Minimize(s, fantasia.Options{Trials: 5, Seed: 1, Algorithm: random, Progress: func(fantasia.Progress) {
		if told++; fail {
			panic("progress")
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if v := recovered(func() { _ = u.Add(0.5, x.Is(0.5)) }); v != "progress" {
		t.Errorf("Add panicked with %v", v)
	}
	fail = false
	if err := u.Add(0.25, x.Is(0.25)); err != nil || told != 2 {
		t.Errorf("after a panic of Progress: %v, called %d times", err, told)
	}
	if best, err := u.Best(); err != nil || best.Value != 0.25 {
		t.Errorf("the best is %+v, %v", best, err)
	}
	bad = true
	if v := recovered(func() { _ = u.Enqueue(x.Is(0.75)) }); v != "constraint" {
		t.Errorf("Enqueue panicked with %v", v)
	}
	// The lock is free. What the panic interrupted is not known, so the study takes nothing more.
	if err := u.Enqueue(x.Is(0.1)); err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("after a panic in the middle of a change: %v", err)
	}
}

// What is nil, or was never opened, is an error that says what it should be.
func TestNilArguments(t *testing.T) {
	var none *fantasia.Space
	if _, err := fantasia.Minimize(none, fantasia.Options{Trials: 1}); !errors.Is(err, fantasia.ErrInvalid) {
		t.Errorf("Minimize(nil): %v", err)
	}
	s := fantasia.NewSpace()
	x := s.Float("x", 0, 1)
	u, err := fantasia.Minimize(s, fantasia.Options{Trials: 2, Algorithm: random})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	objective := func(context.Context, *fantasia.Trial) (float64, error) { return 0, nil }
	var zero fantasia.Study
	var zeroOf fantasia.StudyOf[float64]
	var nobody context.Context
	for name, call := range map[string]func() error{
		"Tell(nil)":          func() error { return u.Tell(nil, 1, nil) },
		"Tell(&Trial{})":     func() error { return u.Tell(&fantasia.Trial{}, 1, nil) },
		"Ask(nil)":           func() error { _, err := u.Ask(nobody); return err },
		"Run(nil, …)":        func() error { return u.Run(nobody, objective) },
		"Run(…, nil)":        func() error { return u.Run(t.Context(), nil) },
		"Recommended(nil)":   func() error { _, err := u.Recommended(nobody); return err },
		"zero: Run":          func() error { return zero.Run(t.Context(), objective) },
		"zero: Ask":          func() error { _, err := zero.Ask(t.Context()); return err },
		"zero: Best":         func() error { _, err := zero.Best(); return err },
		"zero: Enqueue":      func() error { return zero.Enqueue(x.Is(0.5)) },
		"zero: Add":          func() error { return zero.Add(1, x.Is(0.5)) },
		"zero: Curve":        func() error { _, err := zero.Curve(1); return err },
		"zero: Recommended":  func() error { _, err := zero.Recommended(t.Context()); return err },
		"zero: Close":        func() error { return zero.Close() },
		"zero StudyOf: Run":  func() error { return zeroOf.Run(t.Context(), objective) },
		"zero StudyOf: Ask":  func() error { _, err := zeroOf.Ask(t.Context()); return err },
		"zero StudyOf: Tell": func() error { return zeroOf.Tell(nil, 1, nil) },
		"zero StudyOf: Front": func() error {
			_, err := zeroOf.Front()
			return err
		},
		"zero: Trials": func() (err error) {
			for _, err = range zero.Trials() {
			}
			return err
		},
	} {
		if err := call(); !errors.Is(err, fantasia.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if err := u.Run(t.Context(), objective); err != nil {
		t.Errorf("the study after that: %v", err)
	}
}

// A point that crashes its program has as many evaluations as Retries.Lost allows, and then fails. Closing the study
// counts for nothing.
func TestCrashesOfAProgram(t *testing.T) {
	for lost, evaluations := range map[int]int{0: 3, 4: 5, -1: 1} {
		path := filepath.Join(t.TempDir(), "study")
		o := fantasia.Options{Trials: 2, Seed: 1, Algorithm: random, State: path, Retries: fantasia.Retries{Lost: lost}}
		for range 10 {
			s, _ := line()
			u := minimize(t, s, o)
			if _, err := u.Ask(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for n := 1; ; n++ {
			s, _ := line()
			u := minimize(t, s, o)
			trial, err := u.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(path) // as a crash leaves it
			if err != nil {
				t.Fatal(err)
			}
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
			if trial.Number() == 2 {
				if n != evaluations+1 {
					t.Errorf("Lost is %d: trial 1 was evaluated %d times, want %d", lost, n-1, evaluations)
				}
				break
			}
			if n > 20 {
				t.Fatalf("Lost is %d: trial 1 is evaluated for ever", lost)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
