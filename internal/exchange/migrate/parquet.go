package migrate

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/fantasia-hpo/fantasia/study"
)

// maxParquetCells bounds the values of a Parquet file: a few bytes can stand for any number of them.
const maxParquetCells = 5_000_000

// Parquet reads trials from the content of an Apache Parquet file. Its columns are those that
// CSV reads; lists and groups are ignored. The error wraps ErrSource.
func Parquet(content []byte, spec *study.Spec) ([]Evaluated, []Skipped, error) {
	c, err := newCollector(spec)
	if err != nil {
		return nil, nil, err
	}
	return c.parquet(content)
}

// parquet reads the trials of a Parquet file.
func (c *collector) parquet(content []byte) (_ []Evaluated, _ []Skipped, err error) {
	// The checks in pages.go catch what would take much memory. Other contradictions in a
	// file can still make its decoder panic.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: not a valid Parquet file: %v", ErrSource, r)
		}
	}()
	file, err := openParquet(content)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: not a Parquet file: %w", ErrSource, err)
	}
	var leaves []*parquet.Column
	var names []string
	for _, column := range file.Root().Columns() {
		if column.Leaf() && !column.Repeated() {
			leaves, names = append(leaves, column), append(names, column.Name())
		}
	}
	columns, err := c.header(names)
	if err != nil {
		return nil, nil, err
	}
	t := parquetTable{content: content, file: file}
	for i, col := range columns {
		text := leaves[i].Type().Kind() == parquet.ByteArray && readable(leaves[i])
		if (col.kind == ofSeconds || col.kind == ofCost) && !readable(leaves[i]) {
			continue
		}
		if col.kind == ignored && !text { // texts are looked at, since they can be states
			continue
		}
		if !readable(leaves[i]) {
			return nil, nil, fmt.Errorf("%w: column %s is of type %s: want numbers, texts or booleans, so cast it, such as to double", ErrSource,
				col.name, leaves[i].Type())
		}
		t.leaves, t.columns = append(t.leaves, leaves[i]), append(t.columns, col)
	}
	if err := t.read(c); err != nil {
		return nil, nil, fmt.Errorf("%w: after row %d: %w", ErrSource, t.row, err)
	}
	return c.finish()
}

// readable reports whether the values of a column are what they are stored as. For example a
// decimal is stored as a whole number, without its point.
func readable(column *parquet.Column) bool {
	kind, logical := column.Type().Kind(), column.Type().LogicalType()
	switch {
	case kind == parquet.Int96 || kind == parquet.FixedLenByteArray:
		return false
	case logical == nil || logical.Value == nil:
		return true
	}
	switch logical.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType, *format.IntType, *format.NullType:
		return true
	default:
		return false
	}
}

// parquetTable is the part of a Parquet file that is about trials.
type parquetTable struct {
	content []byte
	file    *parquet.File
	leaves  []*parquet.Column
	columns []column
	row     int // the last one that was read, from 1
	text    int // the bytes of texts that were read: a dictionary can repeat a long one in each row
}

// read adds the trials.
func (t *parquetTable) read(c *collector) error {
	if n := t.file.NumRows(); n < 0 || n > maxTrials || n*int64(len(t.columns)) > maxParquetCells {
		return fmt.Errorf("the file has %d rows: want at most %d, and %d values", n, maxTrials, maxParquetCells)
	}
	for g, group := range t.file.RowGroups() {
		readers := make([]parquet.ColumnChunkValueReader, len(t.leaves))
		for i, leaf := range t.leaves {
			if err := checkChunk(t.content, t.file, g, leaf); err != nil {
				return fmt.Errorf("column %s: %w", leaf.Name(), err)
			}
			readers[i] = parquet.NewColumnChunkValueReader(group.ColumnChunks()[leaf.Index()])
		}
		err := t.readGroup(c, readers, group.NumRows())
		for _, r := range readers {
			err = errors.Join(err, r.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readGroup adds the trials of a row group of n rows.
func (t *parquetTable) readGroup(c *collector, readers []parquet.ColumnChunkValueReader, n int64) error {
	rows := make([][]any, min(n, 100))
	for i := range rows {
		rows[i] = make([]any, len(readers))
	}
	values := make([]parquet.Value, len(rows))
	for ; n > 0; n -= int64(len(rows)) {
		rows = rows[:min(n, int64(len(rows)))]
		for i, r := range readers {
			if err := readFull(r, values[:len(rows)]); err != nil {
				return fmt.Errorf("column %s: %w", t.columns[i].name, err)
			}
			for k := range rows {
				kind := values[k].Kind()
				if kind == parquet.ByteArray && t.columns[i].kind == ignored && len(values[k].ByteArray()) > maxShown {
					rows[k][i] = "a text" // it is no state
					continue
				}
				if kind == parquet.ByteArray || kind == parquet.FixedLenByteArray {
					t.text += len(values[k].ByteArray())
				}
				if kind == parquet.ByteArray && len(values[k].ByteArray()) > maxCell {
					return fmt.Errorf("column %s: a text of row %d is larger than %d MiB; want at most that", t.columns[i].name, t.row+k+1, maxCell>>20)
				}
				if t.text > maxFile {
					return fmt.Errorf("column %s: the texts of all rows are larger than %d MiB; want at most that", t.columns[i].name, maxFile>>20)
				}
				rows[k][i] = plain(values[k], t.leaves[i].Type())
			}
		}
		for _, row := range rows {
			t.row++
			c.add(fmt.Sprintf("row %d", t.row), t.columns, row)
		}
	}
	return nil
}

// readFull reads as many values as there is room for.
func readFull(r parquet.ValueReader, values []parquet.Value) error {
	for len(values) > 0 {
		n, err := r.ReadValues(values)
		values = values[n:]
		if len(values) > 0 && errors.Is(err, io.EOF) {
			return fmt.Errorf("has fewer values than the file has rows: %w", io.ErrUnexpectedEOF)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// plain returns a value as the collector takes it.
func plain(v parquet.Value, t parquet.Type) any {
	if v.IsNull() {
		return nil
	}
	unsigned := false
	if logical := t.LogicalType(); logical != nil {
		whole, ok := logical.Value.(*format.IntType)
		unsigned = ok && !whole.IsSigned
	}
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean()
	case parquet.Int32:
		if unsigned {
			return int64(v.Uint32())
		}
		return int64(v.Int32())
	case parquet.Int64:
		if unsigned {
			return strconv.FormatUint(v.Uint64(), 10)
		}
		return v.Int64()
	case parquet.Float:
		return float64(v.Float())
	case parquet.Double:
		return v.Double()
	default:
		return string(v.ByteArray())
	}
}
