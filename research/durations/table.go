package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// table is a tuning task whose trainings were tabulated, as tables.py writes it.
type table struct {
	name     string
	space    *space.Space
	encoding *optimizer.Encoding
	rows     []row
	at       map[string]int // the row of each point
}

// row is a point, with the trainings that were repeated there.
type row struct {
	At      []int     `json:"at"`
	Losses  []float64 `json:"losses"`
	Seconds []float64 `json:"seconds"`
	point   study.Point
}

// readTable reads a table.
func readTable(path string) (t *table, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the table: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("read the table %s: %w", path, err)
	}
	in := json.NewDecoder(bufio.NewReader(unzipped))
	var parameters []struct {
		Name    string `json:"name"`
		Values  []any  `json:"values"`
		Ordered bool   `json:"ordered"`
	}
	if err := in.Decode(&parameters); err != nil {
		return nil, fmt.Errorf("read the parameters of the table %s: %w", path, err)
	}
	t = &table{name: strings.TrimSuffix(filepath.Base(path), ".jsonl.gz"), at: map[string]int{}}
	s := &study.Study{Spec: study.Spec{Objective: study.Objective{Metric: "loss", Direction: study.Minimize}}}
	for _, p := range parameters {
		one := study.Parameter{Name: p.Name, Type: study.Categorical, Values: p.Values}
		if p.Ordered {
			one.Type = study.Ordinal
		}
		s.Spec.Parameters = append(s.Spec.Parameters, one)
	}
	if t.space, err = celspace.Of(s); err != nil {
		return nil, fmt.Errorf("make the space of %s: %w", t.name, err)
	}
	t.encoding = optimizer.NewEncoding(t.space)
	for {
		r := row{point: study.Point{}}
		if err := in.Decode(&r); errors.Is(err, io.EOF) {
			return t, nil
		} else if err != nil {
			return nil, fmt.Errorf("read row %d of the table %s: %w", len(t.rows)+1, path, err)
		}
		for i, k := range r.At {
			r.point[parameters[i].Name] = parameters[i].Values[k]
		}
		t.at[t.space.Key(r.point)] = len(t.rows)
		t.rows = append(t.rows, r)
	}
}

// look returns a training of a point, drawn from its repetitions; ok is false if it is not in the table.
func (t *table) look(p study.Point, rng *rand.Rand) (loss, seconds float64, ok bool) {
	i, ok := t.at[t.space.Key(p)]
	if !ok {
		return 0, 0, false
	}
	k := rng.IntN(len(t.rows[i].Losses))
	return t.rows[i].Losses[k], t.rows[i].Seconds[k], true
}

// tables reads the tables of a folder, one after another.
func tables(folder string, each func(*table) error) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("-tables %q has no tables: want a folder of .jsonl.gz files, which research/durations/tables.py writes", folder)
	}
	for _, path := range files {
		t, err := readTable(path)
		if err != nil {
			return err
		}
		if err := each(t); err != nil {
			return err
		}
	}
	return nil
}
