package local_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/study"
)

// The files of a state directory that hold its studies.
const (
	database = "etcd/data/member/snap/db"
	journal  = "etcd/data/member/wal/0000000000000000-0000000000000000.wal"
)

// completed is the beginning of a trial's record. The study's has its own state.
var completed = regexp.MustCompile(`"number":\d+,"state":"COMPLETED"`)

// flip changes a letter of the first record in a file that says that a trial has completed.
func flip(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := completed.FindIndex(content)
	if at == nil {
		t.Fatalf("%s has no completed trial", path)
	}
	content[at[1]-3] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What one of the two files still has is saved, and the study goes on from there. What both have lost is
// listed, and the rest of the study is written in the forms that other commands read.
func TestRepair(t *testing.T) {
	sound := stateDir(t)
	before := run(t, sound, streamOf(t, 6, 2))
	if c, err := local.CheckState(t.Context(), sound); err != nil || c.Studies != 1 || c.Trials != 6 {
		t.Errorf("a sound state: %+v, %v", c, err)
	}
	for name, files := range map[string][]string{"the database": {database}, "the log": {journal}, "both": {database, journal}} {
		t.Run(name, func(t *testing.T) {
			state, into := stateDir(t), filepath.Join(stateDir(t), "new")
			if err := os.CopyFS(state, os.DirFS(sound)); err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				flip(t, filepath.Join(state, file))
			}
			if _, err := local.CheckState(t.Context(), state); !errors.Is(err, study.ErrDamaged) ||
				!strings.Contains(err.Error(), filepath.Join(state, files[len(files)-1])) {
				t.Errorf("check: %v; want ErrDamaged with the file", err)
			}
			if _, err := local.Run(t.Context(), local.Options{Study: streamOf(t, 7, 2), State: state, GPUs: "none"}); !errors.Is(err,
				study.ErrDamaged) ||
				!strings.Contains(err.Error(), "fantasia state repair") {
				t.Errorf("run: %v; want ErrDamaged with the way back", err)
			}
			r, err := local.Repair(t.Context(), state, into, "test")
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Problems) != len(files) {
				t.Errorf("the problems are %v, want those of %v", r.Problems, files)
			}
			if len(files) == 2 {
				lostPart(t, r)
				return
			}
			if len(r.Whole) != 1 || len(r.Parts) != 0 || len(r.Lost) != 0 {
				t.Errorf("repaired %+v; want the whole study", r)
			}
			after := run(t, into, streamOf(t, 6, 2))
			if diff := cmp.Diff(before.Trials, after.Trials); diff != "" || !after.AlreadyEnded {
				t.Errorf("the trials before and after the repair (-want +got):\n%s", diff)
			}
			if longer := run(t, into, streamOf(t, 8, 2)); longer.Status.Counts.Completed != 8 {
				t.Errorf("the repaired study went on to %+v, want 8 trials", longer.Status.Counts)
			}
		})
	}
}

// lostPart checks a repair that has lost a trial.
func lostPart(t *testing.T, r *local.Repaired) {
	t.Helper()
	if len(r.Whole) != 0 || len(r.Parts) != 1 || len(r.Lost) < 2 || !strings.Contains(strings.Join(r.Lost, "\n"), "trial ") {
		t.Fatalf("repaired %+v; want a part of the study, and the lost trial", r)
	}
	table, err := os.ReadFile(filepath.Join(r.Parts[0], "trials.jsonl"))
	if err != nil || bytes.Count(table, []byte("\n")) != 5 {
		t.Errorf("the table is %s, %v; want 5 trials", table, err)
	}
	file, err := os.ReadFile(filepath.Join(r.Parts[0], "study.json"))
	if err != nil || !bytes.Contains(file, []byte(`"maxTrials": 6`)) {
		t.Errorf("the study file is %s, %v", file, err)
	}
}

func TestRepairIntoWhatExists(t *testing.T) {
	state := stateDir(t)
	run(t, state, streamOf(t, 2, 1))
	if _, err := local.Repair(t.Context(), state, t.TempDir(), "test"); !errors.Is(err, os.ErrExist) {
		t.Errorf("into a directory that exists: %v, want ErrExist", err)
	}
	if _, err := local.Repair(t.Context(), t.TempDir(), filepath.Join(state, "new"), "test"); !errors.Is(err, local.ErrNoState) {
		t.Errorf("of a directory without studies: %v, want ErrNoState", err)
	}
}
