// Package tabulated reads tuning tasks whose trainings were tabulated, as research/durations/tables.py writes them.
package tabulated

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// Table is a tuning task.
type Table struct {
	Name     string
	Space    *space.Space
	Encoding *optimizer.Encoding
	Rows     []Row
	At       map[string]int // the row of each point, by its key
}

// Row is a point, with the trainings that were repeated there.
type Row struct {
	At      []int       `json:"at"` // the place of each value
	Losses  []float64   `json:"losses"`
	Seconds []float64   `json:"seconds"`
	Point   study.Point `json:"-"`
}

// Read reads a table.
func Read(path string) (*Table, error) {
	content, err := lines.Unzip("table", path)
	if err != nil {
		return nil, err
	}
	in := json.NewDecoder(bytes.NewReader(content))
	var parameters []struct {
		Name    string `json:"name"`
		Values  []any  `json:"values"`
		Ordered bool   `json:"ordered"`
	}
	if err := in.Decode(&parameters); err != nil {
		return nil, fmt.Errorf("read the parameters of the table %s: %w", path, err)
	}
	t := &Table{Name: strings.TrimSuffix(filepath.Base(path), ".jsonl.gz"), At: map[string]int{}}
	s := &study.Study{Spec: study.Spec{Objective: study.Objective{Metric: "loss", Direction: study.Minimize}}}
	for _, p := range parameters {
		one := study.Parameter{Name: p.Name, Type: study.Categorical, Values: p.Values}
		if p.Ordered {
			one.Type = study.Ordinal
		}
		s.Spec.Parameters = append(s.Spec.Parameters, one)
	}
	if t.Space, err = celspace.Of(s); err != nil {
		return nil, fmt.Errorf("make the space of %s: %w", t.Name, err)
	}
	t.Encoding = optimizer.NewEncoding(t.Space)
	for {
		r := Row{Point: study.Point{}}
		if err := in.Decode(&r); errors.Is(err, io.EOF) {
			return t, nil
		} else if err != nil {
			return nil, fmt.Errorf("read row %d of the table %s: %w", len(t.Rows)+1, path, err)
		}
		for i, k := range r.At {
			r.Point[parameters[i].Name] = parameters[i].Values[k]
		}
		t.At[t.Space.Key(r.Point)] = len(t.Rows)
		t.Rows = append(t.Rows, r)
	}
}

// Look returns a training of a point, drawn from its repetitions; ok is false if it is not in the table.
func (t *Table) Look(p study.Point, rng *rand.Rand) (loss, seconds float64, ok bool) {
	i, ok := t.At[t.Space.Key(p)]
	if !ok {
		return 0, 0, false
	}
	k := rng.IntN(len(t.Rows[i].Losses))
	return t.Rows[i].Losses[k], t.Rows[i].Seconds[k], true
}

// Each reads the tables of a folder, one after another.
func Each(folder string, each func(*Table) error) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("-tables %q has no tables: want a folder of .jsonl.gz files, which research/durations/tables.py writes", folder)
	}
	for _, path := range files {
		t, err := Read(path)
		if err != nil {
			return err
		}
		if err := each(t); err != nil {
			return err
		}
	}
	return nil
}
