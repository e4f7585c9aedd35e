package local

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// writePart writes the study file of a study and its trials, in the form that import-trials reads.
func writePart(dir string, p *ledger.Part) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := json.MarshalIndent(&p.Study.Definition, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "study.json"), append(file, '\n'), 0o600),
		writeTable(filepath.Join(dir, "trials.jsonl"), p.Trials, p.Study.Definition.Spec.Objectives()))
}

// writeTable writes trials into a new file, as lines of JSON.
func writeTable(path string, trials []record.Trial, objectives []study.Objective) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(file)
	for i := range trials {
		err = errors.Join(err, lines.Encode(row(&trials[i], objectives)))
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// row is a trial as a line of a table. Without objectives, several values are numbered.
func row(t *record.Trial, objectives []study.Objective) map[string]any {
	line := map[string]any{"trial": t.Number, "state": t.State, "attempts": len(t.Attempts)}
	if len(t.Values) == 1 {
		line["value"] = t.Values.First()
	} else {
		for k, value := range t.Values {
			name := strconv.Itoa(k + 1)
			if k < len(objectives) {
				name = objectives[k].Metric
			}
			line["metric:"+name] = value
		}
	}
	if !t.Times.Ended.IsZero() {
		line["ended"] = t.Times.Ended.UTC().Format(time.RFC3339Nano)
	}
	for name, value := range t.Point {
		line["parameter:"+name] = value
	}
	for name, value := range t.Metrics {
		line["metric:"+name] = value
	}
	return line
}
