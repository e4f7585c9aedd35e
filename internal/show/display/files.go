package display

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/htmlreport"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/google/renameio/v2"
)

// The files that a run writes to its state directory.
const (
	ResultFile = "result.json"
	TrialsFile = "trials.csv"
	ReportFile = "report.html"
)

// Interrupted is the state of a study whose run was interrupted. The same command
// continues it; nothing runs until then.
const Interrupted study.State = "INTERRUPTED"

// View is the result in the form for scripts.
func View(r *Result) view.Study {
	v := view.OfStudy(r.Study, r.Status, r.Best, r.Recommended, time.Now())
	v.Front = view.FrontOf(&r.Study.Definition.Spec, r.Front)
	if r.Interrupted && !v.State.Terminal() {
		v.State = Interrupted
		v.Trials.Pending, v.Trials.Queued, v.Trials.Running = v.Trials.Open(), 0, 0
	}
	return v
}

// WriteFiles writes the result and the trials into dir, each file at once. table writes the table of
// trials line by line: it may be large.
func WriteFiles(dir string, r *Result, table func(io.Writer) error) error {
	result, err := json.MarshalIndent(View(r), "", "  ")
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	return errors.Join(write(dir, ResultFile, append(result, '\n')), writeTrials(dir, table))
}

func writeTrials(dir string, table func(io.Writer) error) error {
	file, err := renameio.NewPendingFile(filepath.Join(dir, TrialsFile), renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("write %s: %w", TrialsFile, err)
	}
	defer func() { _ = file.Cleanup() }() // does nothing after CloseAtomicallyReplace
	if err := table(file); err != nil {
		return err
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write %s: %w", TrialsFile, err)
	}
	return nil
}

// reportTimeout bounds the time in which the model of a report is fitted. Without it, the
// end of a run with many trials would be long.
const reportTimeout = 20 * time.Second

// WriteReport writes the report into dir. If ctx ends, or if fitting the model takes too
// long, the report is written without what needs a model, and says so.
func WriteReport(ctx context.Context, dir string, r *Result, version string) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	page, err := htmlreport.HTML(ctx, &htmlreport.Source{
		Study: &r.Study.Definition, View: View(r), Reason: r.Status.Reason, Trials: r.List(), Now: time.Now(), Version: version,
	})
	if err != nil {
		return err
	}
	return write(dir, ReportFile, page)
}

// ForCurves returns the numbers of the trials whose curves the report of a run shows.
func ForCurves(r *Result) (numbers []int) {
	for _, i := range htmlreport.ForCurves(r.List(), view.OfBest(r.Best)) {
		numbers = append(numbers, r.Trials[i].Number)
	}
	return numbers
}

// viewed are the trials of a result as a report takes them.
type viewed struct{ *Result }

// Len implements view.Trials.
func (v viewed) Len() int { return len(v.Trials) }

// At implements view.Trials.
func (v viewed) At(i int) view.Trial {
	t := view.OfTrial(v.Trials[i])
	t.Mark(&v.Study.Definition.Spec)
	t.Measurements = view.OfSeries(v.Curves[t.Trial])
	return t
}

// OfRecords reads the trials of a study as its ledger has them.
func OfRecords(s *study.Study, trials func(context.Context) ([]record.Trial, error)) Reader {
	return func(ctx context.Context) (*study.Study, view.Trials, error) {
		list, err := trials(ctx)
		return s, viewed{&Result{Study: record.Study{Definition: *s}, Trials: list}}, err
	}
}

func write(dir, name string, content []byte) error {
	if err := renameio.WriteFile(filepath.Join(dir, name), content, os.FileMode(0o644)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
