package migrate

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
)

// CSV reads trials from a table with a header. A column is a parameter's name (also as
// "parameter:NAME" or "params_NAME"), "value" or the metric's name, "metric:NAME", or
// "state"; others are ignored. An empty cell is no value, unless the parameter is active and
// has an empty choice. So trials.csv of a run and Optuna's data frames can be read.
//
// Cells are separated by commas, semicolons or tabs. If they are not separated by commas,
// numbers may have a decimal comma. The error wraps ErrSource.
func CSV(r io.Reader, spec *study.Spec) ([]Evaluated, []Skipped, error) {
	c, err := newCollector(spec)
	if err != nil {
		return nil, nil, err
	}
	return c.csv(r)
}

// csv reads the trials of a table in text.
func (c *collector) csv(r io.Reader) ([]Evaluated, []Skipped, error) {
	text, err := ReadFile(&boundCells{from: utf8(r)})
	if err != nil {
		return nil, nil, err
	}
	if err := checkLines(text); err != nil {
		return nil, nil, err
	}
	in, columns, err := c.table(keepReturns(text))
	if err != nil {
		return nil, nil, err
	}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return c.finish()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrSource, err)
		}
		line, _ := in.FieldPos(0)
		if len(cells) != len(columns) {
			return nil, nil, fmt.Errorf("%w: line %d has %d cells, the header %d: want as many, and quotes around a cell with a separator in it",
				ErrSource, line, len(cells), len(columns))
		}
		if !slices.ContainsFunc(cells, func(cell string) bool { return cell != "" }) {
			continue // spreadsheets write such rows at the end
		}
		c.add(fmt.Sprintf("line %d", line), columns, each.Of(cells, func(cell string) any { return cell }))
		if err := c.full(); err != nil {
			return nil, nil, err
		}
	}
}

// table reads the header with the separator that makes the most of it known columns.
func (c *collector) table(text []byte) (in *csv.Reader, columns []column, err error) {
	most := -1
	first, _, _ := bytes.Cut(text, []byte{'\n'})
	for _, separator := range ",;\t" {
		reader := csv.NewReader(bytes.NewReader(text))
		reader.Comma, reader.FieldsPerRecord = separator, -1
		// Spaces after the separators are no part of the cells if the header has them too.
		reader.TrimLeadingSpace = bytes.Contains(first, []byte(string(separator)+" "))
		names, failed := reader.Read()
		if failed != nil {
			if in == nil {
				err = fmt.Errorf("%w: read the header: %w", ErrSource, failed)
			}
			continue
		}
		for i := range names {
			names[i] = strings.Trim(names[i], " ")
		}
		found, failed := c.header(names)
		known := len(found) - len(slices.DeleteFunc(slices.Clone(found), func(col column) bool { return col.kind != ignored }))
		if known > most {
			in, columns, err, most = reader, found, failed, known
			c.signs.commas = separator != ','
		}
	}
	return in, columns, err
}

// keepReturns doubles carriage returns before newlines within quotes. The csv package drops
// one there, but a choice can contain both.
func keepReturns(text []byte) []byte {
	if !bytes.Contains(text, []byte("\r\n")) {
		return text
	}
	var out bytes.Buffer
	quoted := false
	for i, b := range text {
		if b == '"' {
			quoted = !quoted
		}
		if quoted && b == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			out.WriteByte('\r')
		}
		out.WriteByte(b)
	}
	return out.Bytes()
}
