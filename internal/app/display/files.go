package display

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/app/report"
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
func View(r *local.Result) view.Study {
	v := view.OfStudy(r.Study, r.Status, r.Best, r.Recommended, time.Now())
	if r.Interrupted && !v.State.Terminal() {
		v.State = Interrupted
		v.Trials.Pending, v.Trials.Queued, v.Trials.Running = v.Trials.Open(), 0, 0
	}
	return v
}

// WriteFiles writes the result and the trials into dir, each file at once.
func WriteFiles(dir string, r *local.Result) error {
	result, err := json.MarshalIndent(View(r), "", "  ")
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	var trials bytes.Buffer
	if err := WriteCSV(&trials, r.Trials, &r.Study.Definition.Spec); err != nil {
		return err
	}
	return errors.Join(write(dir, ResultFile, append(result, '\n')), write(dir, TrialsFile, trials.Bytes()))
}

// reportTimeout bounds the time in which the model of a report is fitted. Without it, the
// end of a run with many trials would be long.
const reportTimeout = 20 * time.Second

// WriteReport writes the report into dir. If ctx ends, or if fitting the model takes too
// long, the report is written without what needs a model, and says so.
func WriteReport(ctx context.Context, dir string, r *local.Result, version string) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	page, err := report.HTML(ctx, &report.Source{
		Study: &r.Study.Definition, View: View(r), Reason: r.Status.Reason, Trials: viewed(r), Now: time.Now(), Version: version,
	})
	if err != nil {
		return err
	}
	return write(dir, ReportFile, page)
}

// ForCurves returns the numbers of the trials whose curves the report of a run shows.
func ForCurves(r *local.Result) (numbers []int) {
	for _, i := range report.ForCurves(viewed(r), view.OfBest(r.Best)) {
		numbers = append(numbers, r.Trials[i].Number)
	}
	return numbers
}

// viewed returns the trials as a report takes them.
func viewed(r *local.Result) []view.Trial {
	list := make([]view.Trial, len(r.Trials))
	for i := range r.Trials {
		list[i] = view.OfTrial(r.Trials[i])
		for _, series := range r.Curves[r.Trials[i].Number] {
			c := view.Curve{Metric: series.Metric}
			for _, p := range series.Points {
				c.Steps, c.Values = append(c.Steps, p.Step), append(c.Values, p.Value)
			}
			list[i].Measurements = append(list[i].Measurements, c)
		}
	}
	return list
}

func write(dir, name string, content []byte) error {
	if err := renameio.WriteFile(filepath.Join(dir, name), content, os.FileMode(0o644)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// WriteCSV writes a line for each trial: its state, value, metrics, parameters and
// times, and the reason if it failed or was stopped early.
func WriteCSV(w io.Writer, trials []record.Trial, spec *study.Spec) error {
	metrics := metricNames(trials)
	header := []string{"trial", "state", "value", "attempts", "worker", "source", "staleness", "seconds", "created", "started", "ended", "failure", "message"}
	for _, m := range metrics {
		header = append(header, "metric:"+m)
	}
	for i := range spec.Parameters {
		header = append(header, "parameter:"+spec.Parameters[i].Name)
	}
	out := csv.NewWriter(w)
	rows := [][]string{header}
	for i := range trials {
		rows = append(rows, row(&trials[i], metrics, spec))
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write the trials: %w", err)
	}
	return nil
}

func row(t *record.Trial, metrics []string, spec *study.Spec) []string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	value, worker, elapsed := "", "", ""
	if len(t.Values) > 0 {
		value = number(t.Values.First())
	}
	if last := t.Last(); last != nil {
		worker = last.Worker
	}
	if !t.Times.Started.IsZero() && !t.Times.Ended.IsZero() {
		elapsed = strconv.FormatFloat(t.Times.Ended.Sub(t.Times.Started).Seconds(), 'f', 3, 64)
	}
	failure, message := "", ""
	if last := t.Last(); last != nil && last.Failure != nil && t.State != study.TrialCompleted {
		failure, message = last.Failure.Reason, view.FailureLine(last.Failure)
	}
	if t.State == study.TrialPruned {
		message = t.Stopped.Reason
	}
	r := []string{
		strconv.Itoa(t.Number), string(t.State), value, strconv.Itoa(len(t.Attempts)), worker, string(t.Source), strconv.Itoa(t.Staleness), elapsed,
		moment(t.Times.Created), moment(t.Times.Started), moment(t.Times.Ended), failure, message,
	}
	for _, m := range metrics {
		if v, ok := t.Metrics[m]; ok {
			r = append(r, number(v))
		} else {
			r = append(r, "")
		}
	}
	for i := range spec.Parameters {
		if v, ok := t.Point[spec.Parameters[i].Name]; ok {
			r = append(r, study.Format(v))
		} else {
			r = append(r, "")
		}
	}
	return r
}

// moment formats a time as RFC 3339, in UTC with milliseconds; "" for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func metricNames(trials []record.Trial) []string {
	seen := map[string]bool{}
	var names []string
	for i := range trials {
		for m := range trials[i].Metrics {
			if !seen[m] {
				seen[m] = true
				names = append(names, m)
			}
		}
	}
	slices.Sort(names)
	return names
}
