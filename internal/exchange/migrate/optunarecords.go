package migrate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// readOptuna reads a study from a storage of Optuna, as the function Optuna describes.
func readOptuna(ctx context.Context, source string, o OptunaOptions) (*optunaStudy, error) {
	if !IsStorageURL(source) {
		file, err := openJournal(source)
		if err != nil {
			return nil, err
		}
		if file != nil {
			defer func() { _ = file.Close() }() // only read
			return readJournal(file, o.Study)
		}
	}
	where, err := locate(source)
	if err != nil {
		return nil, err
	}
	return readDatabase(ctx, o.Python, where, source, o.Study)
}

// storedStudy is a study in the list of a storage.
type storedStudy struct {
	id         int64
	name       string
	directions []string // MINIMIZE or MAXIMIZE
	attributes map[string]any
}

// chooseStudy returns the study of that name, or for an empty name the only one.
func chooseStudy(studies []storedStudy, want string) (*storedStudy, error) {
	var names []string
	for i, s := range studies {
		if s.name == want || want == "" && len(studies) == 1 {
			return &studies[i], nil
		}
		names = append(names, fmt.Sprintf("%q", s.name))
	}
	slices.Sort(names) // each database has an order of its own
	switch list := strings.Join(names, ", "); {
	case len(names) == 0:
		return nil, fmt.Errorf("%w: the storage has no studies", ErrSource)
	case want == "":
		return nil, fmt.Errorf("%w: the storage has several studies: name one of %s", ErrSource, list)
	default:
		return nil, fmt.Errorf("%w: the storage has no study %q: want one of %s", ErrSource, want, list)
	}
}

// study returns the study without its trials.
func (s *storedStudy) study() (*optunaStudy, error) {
	if len(s.directions) < 1 || len(s.directions) > study.MaxObjectives {
		return nil, fmt.Errorf("%w: study %q has %d objectives: want 1 to %d", ErrSource, s.name, len(s.directions), study.MaxObjectives)
	}
	made := &optunaStudy{name: s.name, attributes: s.attributes}
	for i, d := range s.directions {
		o := study.Objective{Metric: optunaMetric, Direction: study.Minimize}
		if len(s.directions) > 1 {
			o.Metric = fmt.Sprintf("values_%d", i)
		}
		if d == "MAXIMIZE" {
			o.Direction = study.Maximize
		}
		made.objectives = append(made.objectives, o)
	}
	return made, nil
}

// openJournal opens a file if it is a journal of Optuna, whose lines are objects of JSON; otherwise it
// returns nil.
func openJournal(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	first := make([]byte, 1)
	if n, _ := f.ReadAt(first, 0); n == 1 && bytes.Equal(first, []byte("{")) { // locate reports the error
		return f, nil
	}
	return nil, f.Close()
}
