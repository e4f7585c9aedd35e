package cli

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/export"
)

const exportLong = `Writes all trials of a study as a table, one row each: state, value, times, metrics and
parameters. The three formats have the same columns:
  csv      for spreadsheets and everything else
  jsonl    an object for each trial, on a line of its own
  parquet  Apache Parquet, with types, for pandas, Polars, DuckDB and Spark

fantasia study import-trials reads each of them.`

// exportFormats are the formats by the endings of files.
var exportFormats = map[string]string{".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}

func newStudyExportCommand(a *app, r *remote) *cobra.Command {
	var file, form string
	c := r.reads(&cobra.Command{
		Use:   "export STUDY",
		Short: "Write the trials of a study as CSV, JSON lines or Parquet",
		Long:  exportLong,
		Example: `  fantasia study export digits -o digits.csv
  fantasia study export digits -o digits.parquet
  fantasia study export --state .fantasia/digits --format jsonl | jq .value`,
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := exporter(cmd, form, file)
			if err != nil {
				return err
			}
			name, _, err := r.studyIn(cmd, args, 0)
			if err != nil {
				return err
			}
			s, trials, err := r.studyAndTrials(cmd, name)
			if err != nil {
				return err
			}
			var content bytes.Buffer
			if err := write(export.Of(&s.Spec, trials), &content); err != nil {
				return err
			}
			return a.writeFile(file, content.Bytes())
		},
	})
	c.Flags().StringVarP(&file, "output", "o", "-", "`FILE` to write; - is standard output")
	c.Flags().StringVar(&form, "format", "", "csv, jsonl or parquet (default: by the file's ending)")
	choices(c, "format", "csv", "jsonl", "parquet")
	return c
}

// exporter returns what writes a table in the given format, or in that of the file's ending.
func exporter(cmd *cobra.Command, form, file string) (func(*export.Table, io.Writer) error, error) {
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
	}
	return write, nil
}
