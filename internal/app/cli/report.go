package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/durable"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/internal/show/htmlreport"
)

const reportLong = `Writes a report of a study: one HTML file with its results, what they say about the
parameters, what the optimiser and the workers did, and how to read each picture. It
needs no server and no network, and runs no script, so it can be mailed or kept.

The study is read from a server or, with --state, from the state directory of
fantasia run, also while it runs. Nothing is changed.`

func newReportCommand(a *app) *cobra.Command {
	r := &remote{}
	var file, objective string
	c := r.reads(&cobra.Command{
		Use:   "report STUDY",
		Short: "Write a report of a study: one HTML file with all its pictures",
		Long:  reportLong,
		Example: `  fantasia report --state .fantasia/digits
  fantasia report digits --server http://coordinator:8080 -o digits.html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, _, err := r.studyIn(cmd, args, 0)
			if err != nil {
				return err
			}
			src, err := r.source(cmd, name)
			if err != nil {
				return err
			}
			src.Version = a.Version
			if err := src.Show(objective); err != nil {
				return exitWith(ExitUsage, fmt.Errorf("--objective: %w", err))
			}
			page, err := htmlreport.HTML(cmd.Context(), src)
			if err != nil {
				return err
			}
			if err := cmd.Context().Err(); err != nil {
				return fmt.Errorf("make the report: %w", err)
			}
			return a.writeFile(file, page)
		},
	})
	r.flags(c)
	c.Flags().StringVar(&objective, "objective", "", "of several objectives, the `METRIC` that figures of one show; \"\" is the first")
	c.Flags().StringVarP(&file, "output", "o", display.ReportFile, "`FILE` to write; - is standard output")
	return c
}

// writeFile writes a file at once, and says so; - is standard output.
func (a *app) writeFile(file string, content []byte) error {
	if file == "-" {
		if _, err := a.Stdout.Write(content); err != nil {
			return fmt.Errorf("write to standard output: %w", err)
		}
		return nil
	}
	if err := durable.WriteOutput(file, content, 0o644); err != nil {
		return exitWith(ExitError, fmt.Errorf("write %s: %w", file, err))
	}
	return say(a.Stdout, "%s written", file)
}

// bareSource reads a study without curves.
func (r *remote) bareSource(cmd *cobra.Command, nameOrID string) (*htmlreport.Source, error) {
	return r.sourceBy(cmd, nameOrID, fetch.BareSource)
}

// source reads a study for a report.
func (r *remote) source(cmd *cobra.Command, nameOrID string) (*htmlreport.Source, error) {
	return r.sourceBy(cmd, nameOrID, fetch.Source)
}

func (r *remote) sourceBy(cmd *cobra.Command, nameOrID string, read func(fetch.Within, string, view.Study, string) (*htmlreport.Source,
	error)) (*htmlreport.Source, error) {
	s, err := r.get(cmd, nameOrID)
	if err != nil {
		return nil, err
	}
	f := found{Study: s, directory: r.state, idle: r.idle}
	if f.front, err = r.front(cmd, s); err != nil {
		return nil, err
	}
	return read(r.within(cmd), strings.TrimPrefix(nameOrID, "studies/"), f.view(), s.GetReason())
}
