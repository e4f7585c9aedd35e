package display

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
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
	"github.com/fantasia-hpo/fantasia/internal/picture"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/google/renameio/v2"
)

// The files that a run writes to its state directory.
const (
	ResultFile = "result.json"
	TrialsFile = "trials.csv"
	PlotFile   = "progress.svg"
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

// WriteFiles writes the result, the trials, and (if anything has completed) the plot
// into dir. It writes each file atomically.
func WriteFiles(dir string, r *local.Result) error {
	spec := &r.Study.Definition.Spec
	result, err := json.MarshalIndent(View(r), "", "  ")
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	var trials bytes.Buffer
	if err := WriteCSV(&trials, r.Trials, spec); err != nil {
		return err
	}
	files := map[string][]byte{ResultFile: append(result, '\n'), TrialsFile: trials.Bytes()}
	if h := NewHistory(r.Trials, spec.Objective); h.Completed() > 0 {
		h.Title = r.Study.Definition.Metadata.Name
		if r.Recommended != nil {
			h.Recommended = r.Recommended.Trial
		}
		files[PlotFile] = h.SVG(picture.Frame{})
	}
	for name, content := range files {
		if err := renameio.WriteFile(filepath.Join(dir, name), content, os.FileMode(0o644)); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
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
