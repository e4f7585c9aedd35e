package migrate

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/fantasia-hpo/fantasia/study"
)

// Parquet reads trials from an Apache Parquet file. Its columns are those that CSV reads;
// lists and groups are ignored. The error wraps ErrSource.
func Parquet(r io.ReaderAt, size int64, spec *study.Spec) (_ []Evaluated, _ []Skipped, err error) {
	file, err := parquet.OpenFile(r, size)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: not a Parquet file: %w", ErrSource, err)
	}
	c, err := newCollector(spec)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, len(file.Schema().Columns())) // "" for those within others
	var header []string
	for i, path := range file.Schema().Columns() {
		if len(path) == 1 {
			names[i] = path[0]
			header = append(header, path[0])
		}
	}
	if err := c.checkHeader(header); err != nil {
		return nil, nil, err
	}
	number := 0
	for _, group := range file.RowGroups() {
		if number, err = c.rows(group.Rows(), names, number); err != nil {
			return nil, nil, fmt.Errorf("%w: after row %d: %w", ErrSource, number, err)
		}
	}
	return c.trials, c.skipped, nil
}

// rows adds the trials of a row group and returns the number of the last row.
func (c *collector) rows(rows parquet.Rows, names []string, number int) (_ int, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	buffer := make([]parquet.Row, 100)
	for {
		n, err := rows.ReadRows(buffer)
		for _, row := range buffer[:n] {
			number++
			fields := make(map[string]any, len(row))
			for _, v := range row {
				if name := names[v.Column()]; name != "" {
					fields[name] = plain(v)
				}
			}
			c.add(fmt.Sprintf("row %d", number), fields)
		}
		if errors.Is(err, io.EOF) {
			return number, nil
		}
		if err != nil {
			return number, err //nolint:wrapcheck // Parquet says where
		}
	}
}

// plain returns a value as the collector takes it.
func plain(v parquet.Value) any {
	if v.IsNull() {
		return nil
	}
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean()
	case parquet.Int32:
		return int64(v.Int32())
	case parquet.Int64:
		return v.Int64()
	case parquet.Float:
		return float64(v.Float())
	case parquet.Double:
		return v.Double()
	default:
		return string(v.ByteArray())
	}
}
