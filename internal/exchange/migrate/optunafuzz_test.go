package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study/file"
)

// fuzzStudy holds for what is read of each text: it is refused as a source, or becomes a study that can be
// read and trials with finite values, and it takes memory in proportion to the text.
func fuzzStudy(t *testing.T, content []byte, read func([]byte) (*optunaStudy, error)) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	stored, err := read(content)
	var r *Result
	if err == nil {
		r, err = stored.convert(2)
	}
	if err != nil {
		if !errors.Is(err, ErrSource) {
			t.Fatalf("not an error of the source: %v", err)
		}
	} else {
		s, err := file.Parse(r.Study)
		if err != nil {
			t.Fatal(err)
		}
		trials, _, err := stored.evaluated(&s.Spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range trials {
			if math.IsNaN(trial.Values.First()) || math.IsInf(trial.Values.First(), 0) {
				t.Fatalf("%+v", trial)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if used, most := after.TotalAlloc-before.TotalAlloc, uint64(64<<20+1000*len(content)); used > most {
		t.Fatalf("%d bytes were allocated for a text of %d bytes, want at most %d", used, len(content), most)
	}
}

// Whatever a Python writes about a database.
func FuzzOptunaCopy(f *testing.F) {
	f.Add([]byte(copied))
	f.Add([]byte(`{"fault":"storage","text":"not a storage of Optuna"}` + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		fuzzStudy(t, content, func(content []byte) (*optunaStudy, error) {
			s, err := readCopy(bytes.NewReader(content), "python", "mysql://me:s3cret@db/o", "s")
			if err != nil && !errors.Is(err, ErrSource) {
				err = fmt.Errorf("%w: %w", ErrSource, err) // the interpreter is at fault
			}
			return s, err
		})
	})
}

func FuzzOptunaJournal(f *testing.F) {
	lines := strings.SplitAfter(source(f, "ordinary.log"), "\n")
	f.Add([]byte(strings.Join(lines[:60], "")))
	f.Add([]byte(lines[0] + addedWhole("1", "k", `{"name": "CategoricalDistribution", "attributes": {"choices": [null, 1, "1", NaN, [2]]}}`,
		"3") + "\n" +
		`{"op_code": 2, "worker_id": "w", "study_id": 0, "user_attr": {"sizes": [64, NaN]}}` + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		fuzzStudy(t, content, func(content []byte) (*optunaStudy, error) { return readJournal(bytes.NewReader(content), "") })
	})
}
