package migrate

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// readOptuna reads a study from a storage of Optuna, as the function Optuna describes.
func readOptuna(ctx context.Context, source, name string) (_ *optunaStudy, err error) {
	if !IsStorageURL(source) {
		file, err := openJournal(source)
		if err != nil {
			return nil, err
		}
		if file != nil {
			defer func() { _ = file.Close() }() // only read
			return readJournal(file, name)
		}
	}
	db, err := openStorage(ctx, source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ids, err := queried(ctx, db, func(r *sql.Rows, s *storedStudy) error { return r.Scan(&s.id, &s.name) },
		"SELECT study_id, study_name FROM studies")
	if err != nil {
		return nil, err
	}
	found, err := chooseStudy(ids, name)
	if err != nil {
		return nil, err
	}
	directions, err := queried(ctx, db, func(r *sql.Rows, d *directionRow) error { return r.Scan(&d.objective, &d.direction) },
		"SELECT objective, direction FROM study_directions WHERE study_id = ?", found.id)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(directions, func(a, b directionRow) int { return cmp.Compare(a.objective, b.objective) })
	for _, d := range directions {
		found.directions = append(found.directions, d.direction)
	}
	if found.attributes, err = readStudyAttributes(ctx, db, found.id); err != nil {
		return nil, err
	}
	s, err := found.study()
	if err != nil {
		return nil, err
	}
	if s.trials, err = readTrials(ctx, db, found.id, len(s.objectives)); err != nil {
		return nil, err
	}
	s.limit()
	return s, nil
}

// directionRow is the direction of an objective.
type directionRow struct {
	objective int
	direction string
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

// trialRow is a trial in a database, with its key.
type trialRow struct {
	id int64
	optunaTrial
}

// parameterRow is a parameter in a database, with its key.
type parameterRow struct {
	id, trial    int64
	name         string
	value        float64
	distribution string
}

// readTrials reads the trials of a study. It sorts them itself: a database would sort all
// rows of a damaged file before it returns the first one.
func readTrials(ctx context.Context, s *storage, id int64, objectives int) ([]*optunaTrial, error) {
	rows, err := queried(ctx, s, func(r *sql.Rows, t *trialRow) error { return r.Scan(&t.id, &t.number, &t.state) },
		"SELECT trial_id, number, state FROM trials WHERE study_id = ?", id)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b trialRow) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.id, b.id)) })
	trials, at := make([]*optunaTrial, len(rows)), make(map[int64]*optunaTrial, len(rows))
	for i := range rows {
		trials[i] = &rows[i].optunaTrial
		at[rows[i].id] = trials[i]
	}
	if err := readValues(ctx, s, id, at, objectives); err != nil {
		return nil, err
	}
	parameters, err := queried(ctx, s, func(r *sql.Rows, p *parameterRow) error {
		return r.Scan(&p.id, &p.trial, &p.name, &p.value, &p.distribution)
	}, `SELECT p.param_id, p.trial_id, p.param_name, p.param_value, p.distribution_json FROM trial_params p
		JOIN trials t ON t.trial_id = p.trial_id WHERE t.study_id = ?`, id)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(parameters, func(a, b parameterRow) int { return cmp.Compare(a.id, b.id) })
	known := distributions{}
	for _, p := range parameters {
		if t := at[p.trial]; t != nil {
			t.parameters = append(t.parameters, optunaParameter{p.name, p.value, known.get(p.distribution)})
		}
	}
	if err := readAttributes(ctx, s, id, at); err != nil {
		return nil, err
	}
	return trials, readConstraints(ctx, s, id, at)
}

// valueRow is the value of one objective of a trial.
type valueRow struct {
	trial     int64
	objective int
	value     sql.NullFloat64
}

// readValues reads the values of a study's trials. Those of a trial are complete or left out.
func readValues(ctx context.Context, s *storage, id int64, at map[int64]*optunaTrial, objectives int) error {
	rows, err := queried(ctx, s, func(r *sql.Rows, v *valueRow) error { return r.Scan(&v.trial, &v.objective, &v.value) },
		`SELECT v.trial_id, v.objective, v.value FROM trial_values v
		JOIN trials t ON t.trial_id = v.trial_id WHERE t.study_id = ?`, id)
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b valueRow) int { return cmp.Compare(a.objective, b.objective) })
	for _, v := range rows {
		if t := at[v.trial]; t != nil && v.objective == len(t.values) && v.objective < objectives {
			if !v.value.Valid {
				v.value.Float64 = math.NaN() // Optuna keeps an infinite value as NULL
			}
			t.values = append(t.values, v.value.Float64)
		}
	}
	return nil
}

// attributeRow is an attribute of a trial, or of a study, in a database. Its value is JSON. User attributes have no id here.
type attributeRow struct {
	id, trial   int64
	name, value string
}

// readAttributes reads the user attributes of a study's trials that can be numbers: others may be
// long.
func readAttributes(ctx context.Context, s *storage, id int64, at map[int64]*optunaTrial) error {
	attributes, err := queried(ctx, s, func(r *sql.Rows, a *attributeRow) error {
		return r.Scan(&a.trial, &a.name, &a.value)
	}, `SELECT a.trial_id, a.key, a.value_json FROM trial_user_attributes a
		JOIN trials t ON t.trial_id = a.trial_id WHERE t.study_id = ? AND length(a.value_json) <= 40`, id)
	if err != nil {
		return err
	}
	for _, a := range attributes {
		var value any
		if t := at[a.trial]; t != nil && unmarshalPython([]byte(a.value), &value) == nil {
			t.attribute(a.name, value)
		}
	}
	return nil
}

// openJournal opens a file if it is a journal of Optuna, whose lines are objects of JSON; otherwise it
// returns nil.
func openJournal(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	first := make([]byte, 1)
	if n, _ := f.ReadAt(first, 0); n == 1 && bytes.Equal(first, []byte("{")) { // openStorage reports the error
		return f, nil
	}
	return nil, f.Close()
}
