package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/wal"
	"github.com/fantasia-hpo/fantasia/study"
)

// evaluated returns the content of a journal of three trials that were handed out and completed, one after the other, and
// its pieces: first the study, then two for each trial.
func evaluated(t *testing.T) ([]byte, []wal.Piece) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state")
	j, _ := open(t, path)
	latest := func() *Stored { return &Stored{Study: record.Study{ID: "one"}} }
	commit := func(out engine.Output) {
		t.Helper()
		if err := j.Commit(&out, latest); err != nil {
			t.Fatal(err)
		}
	}
	status := record.Status{State: study.Running}
	commit(engine.Output{Study: &record.Study{ID: "one"}, Status: &status})
	for n := 1; n <= 3; n++ {
		trial := record.Trial{Number: n, State: study.TrialRunning, Point: study.Point{"x": float64(n)}}
		status.Trials, status.Position, status.Counts.Running = n, status.Position+1, 1
		now := status
		commit(engine.Output{Trials: []record.Trial{trial}, Status: &now})
		trial.State, trial.Values = study.TrialCompleted, study.Values{float64(n)}
		status.Position, status.Counts.Running, status.Counts.Completed = status.Position+1, 0, n
		then := status
		commit(engine.Output{Trials: []record.Trial{trial}, Status: &then})
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content, wal.Salvage(content, magic)
}

// What is left of a journal is named by its damage, and nothing else is lost.
func TestSalvage(t *testing.T) {
	content, pieces := evaluated(t)
	if s := Salvage(content); len(s.Problems)+len(s.Lost) > 0 || len(s.Stored.Trials) != 3 {
		t.Errorf("a sound file: %+v", s)
	}
	flip := func(numbers ...int) []byte {
		damaged := slices.Clone(content)
		for _, n := range numbers {
			damaged[pieces[n].At+12+len(pieces[n].Data)/2] ^= 1
		}
		return damaged
	}
	zero := func(n int) []byte {
		damaged := slices.Clone(content)
		clear(damaged[pieces[n].At : pieces[n].At+12+len(pieces[n].Data)])
		return damaged
	}
	wentOn := func(n int) []string {
		return []string{fmt.Sprintf("how trial %d went on: its newest sound record has it as RUNNING", n)}
	}
	end := func(n int) string {
		return fmt.Sprintf("what was recorded after byte %d, if it was more: "+
			"the end of the file, after trial 3, is cut off or damaged", pieces[n].At)
	}
	twice := slices.Insert(slices.Clone(content), len(content), content[pieces[3].At:pieces[4].At]...)
	for name, test := range map[string]struct {
		content  []byte
		problems string
		lost     []string
		states   string
	}{
		"the end of a trial":        {flip(2), "of trial 1", wentOn(1), "RUNNING COMPLETED COMPLETED"},
		"that of the last one":      {flip(6), "of trial 3", append(wentOn(3), end(6)), "COMPLETED COMPLETED RUNNING"},
		"without a text":            {zero(6), "bytes at byte", append(wentOn(3), end(6)), "COMPLETED COMPLETED RUNNING"},
		"a beginning":               {flip(3), "of trial 2", nil, "COMPLETED COMPLETED COMPLETED"},
		"all of a trial":            {flip(3, 4), "of trial 2", []string{"trial 2"}, "COMPLETED CANCELLED COMPLETED"},
		"the study, which is twice": {flip(0), "bytes at byte", nil, "COMPLETED COMPLETED COMPLETED"},
		"a newer record at the front": {slices.Insert(slices.Clone(content), pieces[1].At, content[pieces[5].At:]...), "is not at its place", nil,
			"COMPLETED COMPLETED COMPLETED"},
		"no first line":              {content[pieces[0].At:], "its first line", nil, "COMPLETED COMPLETED COMPLETED"},
		"the first line":             {append([]byte("g"), content[1:]...), "bytes at byte 0", nil, "COMPLETED COMPLETED COMPLETED"},
		"an older record at the end": {twice, "is not at its place", nil, "COMPLETED COMPLETED COMPLETED"},
		"both records of the study": {flip(0, 1), "of trial 1", []string{"the study's specification, and with it what its trials mean"},
			"COMPLETED COMPLETED COMPLETED"},
		"a file that is cut in a hole": {content[:pieces[6].At+3], "3 bytes at byte", append(wentOn(3), end(6)), "COMPLETED COMPLETED RUNNING"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Salvage(test.content)
			var states []string
			for i, trial := range s.Stored.Trials {
				if states = append(states, string(trial.State)); trial.Number != i+1 {
					t.Errorf("trial %d is the %d-th", trial.Number, i+1)
				}
			}
			if got := strings.Join(states, " "); got != test.states || !slices.Equal(s.Lost, test.lost) ||
				!strings.Contains(strings.Join(s.Problems, "\n"), test.problems) {
				t.Errorf("the trials are %s with %q and %q; want %s with %q and %q", got, s.Problems, s.Lost, test.states, test.problems, test.lost)
			}
			path := filepath.Join(t.TempDir(), "new")
			if err := s.Stored.Write(path); err != nil {
				t.Fatal(err)
			}
			written, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if again := Salvage(written); len(again.Problems) > 0 || fmt.Sprint(again.Stored) != fmt.Sprint(s.Stored) {
				t.Errorf("what was written has %+v, want %+v", again, s)
			}
			if err := s.Stored.Write(path); err == nil {
				t.Error("a file that exists is written again")
			}
		})
	}
	if s := Salvage([]byte("name: a\n")); s != nil {
		t.Errorf("another file is %+v", s)
	}
}
