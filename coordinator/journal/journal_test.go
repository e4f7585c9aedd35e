package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/wal"
	"github.com/fantasia-hpo/fantasia/study"
)

func open(t testing.TB, path string) (*Journal, *Stored) {
	t.Helper()
	j, stored, err := Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return j, stored
}

// A journal that changes the same trials again and again does not grow without bound, and holds
// the same before and after it is written anew.
func TestCompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	j, stored := open(t, path)
	if stored != nil {
		t.Fatalf("a new journal holds %v", stored)
	}
	want := &Stored{Study: record.Study{ID: "one"}}
	latest := func() *Stored {
		return &Stored{Study: want.Study, Status: want.Status, Model: want.Model, Trials: want.Trials}
	}
	curves := map[int]*curve.Curve{1: curve.New(1), 2: curve.New(1)}
	largest := int64(0)
	for i := range 120 {
		number := 1 + i%2
		trial := record.Trial{Number: number, State: study.TrialRunning, Note: strings.Repeat("x", 100_000) + fmt.Sprint(i)}
		if i < 2 {
			want.Trials = append(want.Trials, trial)
		}
		want.Trials[number-1], want.Status.Position = trial, int64(i)
		curves[number].Add(int64(i), map[string]float64{"value": float64(i)})
		change, _ := curves[number].Changes(number)
		status := want.Status
		out := &engine.Output{Trials: []record.Trial{trial}, Status: &status, Curves: []curve.Change{change}}
		if i == 0 {
			out.Study = &want.Study
		}
		if err := j.Commit(out, latest); err != nil {
			t.Fatal(err)
		}
		largest = max(largest, j.log.Size())
	}
	if largest < compactAt*compactFrom/2 || largest > compactAt*compactFrom+200_000 {
		t.Errorf("the file had up to %d bytes", largest)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // reading it does not change it
		j, stored = open(t, path)
		got := &Stored{Study: stored.Study, Status: stored.Status, Model: stored.Model, Trials: stored.Trials}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the journal holds position %d and %d trials, want %d and %d", got.Status.Position, len(got.Trials), want.Status.Position,
				len(want.Trials))
		}
		for number, c := range curves {
			if read, err := j.Curve(number); err != nil || !reflect.DeepEqual(read.Series(), c.Series()) {
				t.Errorf("the curve of trial %d: %v", number, err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is no journal, or names trials that cannot be, is refused.
func TestWrongRecords(t *testing.T) {
	for name, records := range map[string][]string{
		"no JSON":    {"{"},
		"no study":   {`{"status":{}}`},
		"a gap":      {`{"study":{},"status":{}}`, `{"trials":[{"number":2}]}`},
		"no segment": {`{"study":{},"status":{},"curves":[{"trial":1,"segments":[{"number":1,"data":{}}],"length":2}]}`},
	} {
		path := filepath.Join(t.TempDir(), "state")
		l, _, _, err := wal.Open(path, magic)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if err := l.Append([]byte(r)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(path, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
}

// Whatever a file holds, Read returns a study or an error of a known kind.
func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "state")
	j, _ := open(f, path)
	out := &engine.Output{Study: &record.Study{ID: "one"}, Status: &record.Status{}, Trials: []record.Trial{{Number: 1}}}
	if err := errors.Join(j.Commit(out, nil), j.Close()); err != nil {
		f.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(magic + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		stored, err := Read(content)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatalf("an error of another kind: %v", err)
		}
		if stored == nil {
			return
		}
		for i := range stored.Trials {
			if stored.Trials[i].Number != i+1 {
				t.Fatalf("trial %d is the %d-th", stored.Trials[i].Number, i+1)
			}
		}
	})
}
