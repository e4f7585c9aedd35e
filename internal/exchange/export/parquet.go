package export

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/fantasia-hpo/fantasia/api/view"
)

// Parquet writes an Apache Parquet file of one row group. All columns are optional; times
// are in UTC with milliseconds.
func (t *Table) Parquet(w io.Writer) error {
	schema := parquet.NewSchema("trials", order(t.columns))
	out := parquet.NewWriter(w, schema, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("fantasia", "", ""))
	row := make(parquet.Row, len(t.columns))
	var err error
	for _, trial := range view.Each(t.trials) {
		for i, v := range t.row(trial) {
			if at, ok := v.(time.Time); ok {
				v = at.UnixMilli()
			}
			present := 1
			if v == nil {
				present = 0
			}
			row[i] = parquet.ValueOf(v).Level(0, present, i)
		}
		if _, err = out.WriteRows([]parquet.Row{row}); err != nil {
			break
		}
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write trials as Parquet: %w", err)
	}
	return nil
}

// ordered is the root of a schema whose fields are in the order of the columns. Those of a
// parquet.Group are in the order of their names.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements parquet.Node.
func (o *ordered) Fields() []parquet.Field { return o.fields }

func order(columns []column) *ordered {
	o := &ordered{Group: parquet.Group{}}
	place := make(map[string]int, len(columns))
	for i, c := range columns {
		o.Group[c.name], place[c.name] = parquet.Optional(nodeOf(c.kind)), i
	}
	o.fields = o.Group.Fields()
	slices.SortFunc(o.fields, func(a, b parquet.Field) int { return place[a.Name()] - place[b.Name()] })
	return o
}

func nodeOf(k kind) parquet.Node {
	switch k {
	case whole:
		return parquet.Int(64)
	case number:
		return parquet.Leaf(parquet.DoubleType)
	case boolean:
		return parquet.Leaf(parquet.BooleanType)
	case instant:
		return parquet.Timestamp(parquet.Millisecond)
	default:
		return parquet.String()
	}
}
