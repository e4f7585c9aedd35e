//go:build failpoints

package failpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	here  = LeaderBeforeCommit
	there = LeaderAfterCommit
)

// reached returns at which of n times a point fails.
func reached(t *testing.T, s *set, p Point, n int) (failed []int) {
	t.Helper()
	for i := 1; i <= n; i++ {
		switch err := s.reach(p); {
		case errors.Is(err, syscall.ENOSPC):
			failed = append(failed, i)
		case err != nil:
			t.Fatal(err)
		}
	}
	return failed
}

func TestRules(t *testing.T) {
	s, err := newSet(string(here) + "=enospc@2; " + string(there) + "=enospc;")
	if err != nil {
		t.Fatal(err)
	}
	if failed := reached(t, s, here, 3); len(failed) != 1 || failed[0] != 2 {
		t.Errorf("failed at %v, want the second time", failed)
	}
	if failed := reached(t, s, there, 3); len(failed) != 3 {
		t.Errorf("failed at %v, want each time", failed)
	}
}

// Of the processes that share a file one acts, once, and the file is gone.
func TestRulesOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	one, errOne := newSet("@" + file)
	other, errOther := newSet("@" + file)
	if err := errors.Join(errOne, errOther); err != nil {
		t.Fatal(err)
	}
	if failed := reached(t, one, here, 3); failed != nil {
		t.Errorf("failed at %v without a file", failed)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // what was counted before does not matter
		write(string(here) + "=enospc@2")
		if failed := reached(t, other, here, 1); failed != nil {
			t.Errorf("failed at %v, want the second time of one process", failed)
		}
		if failed := reached(t, one, here, 3); len(failed) != 1 || failed[0] != 2 {
			t.Errorf("failed at %v, want the second time", failed)
		}
		if failed := reached(t, other, here, 3); failed != nil {
			t.Errorf("failed at %v though another process has failed", failed)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is still there: %v", err)
		}
	}
	write(string(here) + "=enospc")
	if failed := reached(t, one, here, 3); len(failed) != 3 {
		t.Errorf("failed at %v, want each time", failed)
	}
}

func TestInvalidRules(t *testing.T) {
	for text, want := range map[string]string{
		"nowhere=kill":              "nowhere",
		string(here):                "point=action",
		string(here) + "=explode":   "explode",
		string(here) + "=kill@0":    "want 1 or more",
		string(here) + "=kill@soon": "soon",
		string(here) + "=sleep(x)":  "duration",
	} {
		if _, err := newSet(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}
