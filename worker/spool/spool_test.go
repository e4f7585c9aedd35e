package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/renameio/v2"

	"github.com/fantasia-hpo/fantasia/messaging"
)

func attempt(trial int) messaging.AttemptID {
	return messaging.AttemptID{Study: "s1", Trial: trial, Attempt: 1, Nonce: fmt.Sprintf("n%d", trial)}
}

func result(trial int) *messaging.Result {
	value := float64(trial)
	return &messaging.Result{
		Version: messaging.SchemaVersion, AttemptID: attempt(trial), Worker: "w", Outcome: messaging.OutcomeCompleted,
		Values: []float64{value}, Metrics: map[string]float64{"error": value},
		Ended:        time.Date(2026, 1, 1, 0, 0, trial, 0, time.UTC),
		TraceContext: messaging.TraceContext{Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	}
}

func open(t *testing.T, dir string) *Spool {
	t.Helper()
	s, bad, err := Open(dir)
	if err != nil || len(bad) > 0 {
		t.Fatalf("Open: %v, unreadable %v", err, bad)
	}
	return s
}

func TestResultsSurviveReopening(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, n := range []int{3, 1, 2} {
		if err := s.Put(result(n)); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := s.Remove(attempt(2)); !found || err != nil {
		t.Fatalf("Remove: %v, %v", found, err)
	}
	again := open(t, dir)
	if diff := cmp.Diff([]*messaging.Result{result(1), result(3)}, again.Results()); diff != "" {
		t.Errorf("after reopening (-want +got):\n%s", diff)
	}
	if again.Has(attempt(2)) || !again.Has(attempt(3)) || again.Len() != 2 {
		t.Error("Has or Len disagree with Results")
	}
}

func TestRemoveNeedsTheNonceUnlessItIsUnknown(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Put(result(1)); err != nil {
		t.Fatal(err)
	}
	other := attempt(1)
	other.Nonce = "another"
	if found, err := s.Remove(other); found || err != nil {
		t.Errorf("Remove with another nonce: %v, %v", found, err)
	}
	other.Nonce = ""
	if found, err := s.Remove(other); !found || err != nil {
		t.Errorf("Remove without a nonce: %v, %v", found, err)
	}
}

// A process that is killed while it writes a result leaves a file without its name. The next
// one removes it.
func TestUnfinishedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	f, err := renameio.NewPendingFile(filepath.Join(dir, "s1.1.1.n1.json"), renameio.WithTempDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if s, bad, err := Open(dir); err != nil || len(bad) != 0 || s.Len() != 0 {
		t.Fatalf("Open: %d results, unreadable %v, %v", s.Len(), bad, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}

func TestUnreadableFilesAreSetAside(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Put(result(1)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"half.json": `{"result": {"study`, "s1.9.1.n9.json": `{"result": {"study": "other"}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, bad, err := Open(dir)
	if err != nil || len(bad) != 2 || again.Len() != 1 {
		t.Fatalf("Open: %d results, unreadable %v, %v", again.Len(), bad, err)
	}
	if files, err := os.ReadDir(filepath.Join(dir, unreadable)); err != nil || len(files) != 2 {
		t.Errorf("set aside: %v, %v", files, err)
	}
	if _, bad, _ := Open(dir); len(bad) != 0 {
		t.Errorf("set aside twice: %v", bad)
	}
}

func TestClaimsAreRememberedAcrossKills(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claims")
	j, err := OpenClaims(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := j.Add(attempt(n)); err != nil {
			t.Fatal(err)
		}
	}
	// A kill leaves the file as it is, perhaps with half a line at its end.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("s1 7"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenClaims(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Add(attempt(8)); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{0: true, 1: true, 2: true, 7: false, 8: true} {
		if got := again.Has(attempt(n)); got != want {
			t.Errorf("Has(%d) = %v, want %v", n, got, want)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// A damaged journal is told with its line.
func TestDamagedClaims(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claims")
	if err := os.WriteFile(path, append([]byte("a b\n"), make([]byte, 1<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenClaims(path); err == nil || !strings.Contains(err.Error(), path+":2: a line of 1048576 bytes is no claim") {
		t.Errorf("%v; want the file and the line", err)
	}
}

func TestOldestClaimsAreForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claims")
	j, err := openClaims(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for n := range 25 {
		if err := j.Add(attempt(n)); err != nil {
			t.Fatal(err)
		}
		if len(j.claims) >= 20 || len(j.claims) != len(j.order) {
			t.Fatalf("after %d claims it holds %d and %d", n+1, len(j.claims), len(j.order))
		}
	}
	again, err := openClaims(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for n := 15; n < 25; n++ {
		if !again.Has(attempt(n)) {
			t.Errorf("forgot claim %d of 0 to 24, which is one of the newest ten", n)
		}
	}
}

func BenchmarkPutRemove(b *testing.B) {
	s, _, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	r := result(1)
	for b.Loop() {
		if err := s.Put(r); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Remove(r.AttemptID); err != nil {
			b.Fatal(err)
		}
	}
}

// Claims that could not be written are all written once the file can be written again.
func TestClaimsOutliveAFullDisk(t *testing.T) {
	for name, broken := range map[string]func(j *Claims) error{
		"while it appends":  func(j *Claims) error { return j.file.Close() },
		"while it rewrites": func(j *Claims) error { return os.RemoveAll(filepath.Dir(j.path)) },
	} {
		t.Run(name, func(t *testing.T) {
			const keep = 3 // the sixth claim makes it rewrite the file
			path := filepath.Join(t.TempDir(), "state", "claims")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			j, err := openClaims(path, keep)
			if err != nil {
				t.Fatal(err)
			}
			for n := 1; n < 2*keep; n++ {
				if err := j.Add(attempt(n)); err != nil {
					t.Fatal(err)
				}
			}
			if err := broken(j); err != nil {
				t.Fatal(err)
			}
			if name == "while it appends" {
				j.keep = 100
			}
			if err := j.Add(attempt(2 * keep)); err == nil {
				t.Fatal("a claim was written to a disk that takes none")
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := j.Add(attempt(2*keep + 1)); err != nil {
				t.Errorf("there is room again: %v", err)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			again, err := openClaims(path, 100)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			for n := 2*keep - 1; n <= 2*keep+1; n++ {
				if !again.Has(attempt(n)) {
					t.Errorf("claim %d is lost", n)
				}
			}
		})
	}
}

// A probe that succeeded counts for 5 seconds, unless a result cannot be written meanwhile.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "spool")
		s := open(t, dir)
		lose := func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string, writable bool) {
			t.Helper()
			if err := s.Check(); (err == nil) != writable {
				t.Errorf("%s: Check returns %v", when, err)
			}
		}
		check("at first", true)
		lose()
		time.Sleep(proofLasts - time.Nanosecond)
		check("just before the proof ends", true)
		time.Sleep(time.Nanosecond)
		check("when it has ended", false)
		open(t, dir)
		check("after a failed probe, with room again", true)
		lose()
		if err := s.Put(result(1)); err == nil {
			t.Error("a result was written without a directory")
		}
		check("after a failed write", false)
	})
}
