package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
)

// timeLayout is RFC 3339 with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// CSV writes a header and a line for each trial. Cells without a value are empty.
func (t *Table) CSV(w io.Writer) error { return t.csv(w, false) }

// SpreadsheetCSV is CSV for spreadsheets, which take some texts for formulas and run them: such
// texts get an apostrophe in front. An import reads them with the apostrophe.
func (t *Table) SpreadsheetCSV(w io.Writer) error { return t.csv(w, true) }

// escaped returns a text with an apostrophe where a spreadsheet can see the start of a formula:
// at the start of a cell, and after any separator, because it may not take the comma for it.
// The characters are those of https://owasp.org/www-community/attacks/CSV_Injection.
func escaped(text string) string {
	var out strings.Builder
	before := ','
	for _, r := range text {
		if strings.ContainsRune(",;|\"\t\r\n", before) && strings.ContainsRune("=+-@\t\r\n＝＋－＠", r) {
			out.WriteByte('\'')
		}
		out.WriteRune(r)
		before = r
	}
	return out.String()
}

func (t *Table) csv(w io.Writer, spreadsheet bool) error {
	out := csv.NewWriter(w)
	record := each.Of(t.columns, func(c column) string { return c.name })
	_ = out.Write(record) // Error has the first error
	for _, trial := range view.Each(t.trials) {
		for i, v := range t.row(trial) {
			record[i] = ""
			if at, ok := v.(time.Time); ok {
				record[i] = at.Format(timeLayout)
			} else if v != nil {
				record[i] = study.Format(v)
			}
			if spreadsheet && t.columns[i].kind == text {
				record[i] = escaped(record[i])
			}
		}
		_ = out.Write(record)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write trials as CSV: %w", err)
	}
	return nil
}

// JSONLines writes an object for each trial, on a line of its own. Its keys are the columns,
// in their order; cells without a value are null.
func (t *Table) JSONLines(w io.Writer) error {
	keys := make([][]byte, len(t.columns))
	for i, c := range t.columns {
		key, err := json.Marshal(c.name)
		if err != nil {
			return fmt.Errorf("write trials as JSON: %w", err)
		}
		keys[i] = key
	}
	var line bytes.Buffer
	for _, trial := range view.Each(t.trials) {
		line.Reset()
		for i, v := range t.row(trial) {
			if at, ok := v.(time.Time); ok {
				v = at.Format(timeLayout)
			}
			value, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("write trials as JSON: column %s: %w", t.columns[i].name, err)
			}
			line.WriteByte("{,"[min(i, 1)])
			line.Write(keys[i])
			line.WriteByte(':')
			line.Write(value)
		}
		line.WriteString("}\n")
		if _, err := w.Write(line.Bytes()); err != nil {
			return fmt.Errorf("write trials as JSON: %w", err)
		}
	}
	return nil
}
