package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/study"
)

const exportLong = `Writes all trials of a study as a table, one row each: state, value, times, metrics and
parameters. The three formats have the same columns:
  csv      for spreadsheets and everything else
  jsonl    an object for each trial, on a line of its own
  parquet  Apache Parquet, with types, for pandas, Polars, DuckDB and Spark

fantasia study import-trials reads each of them.

Of a damaged --state it writes what can be read. It says on standard error what is lost,
and the exit code is then 1.

Spreadsheets run texts that look like formulas. If you do not trust those who write a
study's choices, labels, notes and errors, add --spreadsheet before you open its CSV in one.
Texts that look like formulas then begin with an apostrophe; do not import that file.`

// exportFormats are the formats by the endings of files.
var exportFormats = map[string]string{".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}

func newStudyExportCommand(a *app, r *remote) *cobra.Command {
	var file, form string
	var spreadsheet bool
	c := r.reads(&cobra.Command{
		Use:   "export STUDY",
		Short: "Write the trials of a study as CSV, JSON lines or Parquet",
		Long:  exportLong,
		Example: `  fantasia study export digits -o digits.csv
  fantasia study export digits -o digits.parquet
  fantasia study export digits -o for-excel.csv --spreadsheet
  fantasia study export --state .fantasia/digits --format jsonl | jq .value`,
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := exporter(cmd, form, file, spreadsheet)
			if err != nil {
				return err
			}
			table, err := r.exported(cmd, args)
			damage := err
			if r.state != "" && isDamage(err) {
				r.damaged = true
				table, err = r.exported(cmd, args)
			}
			if err != nil {
				return errors.Join(err, damage)
			}
			var content bytes.Buffer
			if err := write(table, &content); err != nil {
				return err
			}
			if err := a.writeFile(file, content.Bytes()); err != nil || damage == nil {
				return err
			}
			for _, what := range r.lost {
				damage = fmt.Errorf("%w\nlost: %s", damage, what)
			}
			return fmt.Errorf("only what can be read was exported: %w", damage)
		},
	})
	c.Flags().StringVarP(&file, "output", "o", "-", "`FILE` to write; - is standard output")
	c.Flags().BoolVar(&spreadsheet, "spreadsheet", false, "escape texts that a spreadsheet would run as formulas; only csv")
	c.Flags().StringVar(&form, "format", "", "csv, jsonl or parquet (default: by the file's ending)")
	choices(c, "format", "csv", "jsonl", "parquet")
	return c
}

// exported returns the table of a study's trials.
func (r *remote) exported(cmd *cobra.Command, args []string) (*export.Table, error) {
	name, _, err := r.studyIn(cmd, args, 0)
	if err != nil {
		return nil, err
	}
	s, trials, err := r.studyAndTrials(cmd, name)
	if err != nil {
		return nil, err
	}
	return export.Of(&s.Spec, view.List(trials)), nil
}

// isDamage reports whether an error says that a state is damaged.
func isDamage(err error) bool {
	return errors.Is(err, study.ErrDamaged) || err != nil && connect.CodeOf(err) == connect.CodeDataLoss
}

// exporter returns what writes a table in the given format, or in that of the file's ending.
func exporter(cmd *cobra.Command, form, file string, spreadsheet bool) (func(*export.Table, io.Writer) error, error) {
	if form == "" {
		form = exportFormats[strings.ToLower(filepath.Ext(file))]
	}
	if form == "" && file == "-" {
		form = "csv"
	}
	write := map[string]func(*export.Table, io.Writer) error{
		"csv": (*export.Table).CSV, "jsonl": (*export.Table).JSONLines, "parquet": (*export.Table).Parquet,
	}[form]
	switch {
	case form == "":
		return nil, usagef(cmd, "the format of %s is unknown: want --format csv, jsonl or parquet", file)
	case write == nil:
		return nil, usagef(cmd, "--format is %q; want csv, jsonl or parquet", form)
	case spreadsheet && form != "csv":
		return nil, usagef(cmd, "--spreadsheet is for csv, and the format is %s: leave one out", form)
	case spreadsheet:
		return (*export.Table).SpreadsheetCSV, nil
	}
	return write, nil
}
