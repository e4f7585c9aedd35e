package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/internal/exchange/migrate"
	"github.com/fantasia-hpo/fantasia/study"
	studyfile "github.com/fantasia-hpo/fantasia/study/file"
)

const importTrialsLong = `Adds trials that were evaluated elsewhere to a study, values and all: its optimiser
learns from them, and they do not count against the budget. Importing the same file
again adds nothing.

FILE is one of these, by its ending or by --format:
  csv     a table with a header: a column for each parameter, and one named value or
          like the metric; what fantasia study export writes, or a data frame of Optuna.
          Cells are separated by commas, semicolons or tabs
  json    objects with parameters and value, in a list or one after another, as
          fantasia trial list -o json prints them (.json, .jsonl, .ndjson)
  parquet a table like that of csv
  optuna  a storage of Optuna: a file of SQLite (.db, .sqlite, .sqlite3) or of a
          journal, or the URL that Optuna has: sqlite:///…,
          mysql://USER@HOST/DATABASE or postgresql://…. A password can be in
          PGPASSWORD or MYSQL_PWD instead. A database is read by a Python with
          Optuna: that of --python, of the active environment, or python3

Trials that have not completed, or that are not in the study's space, are left out,
and listed with the reason.`

// maxListed is how many trials that were left out are listed.
const maxListed = 20

// trialFormats are the formats by the endings of files.
var trialFormats = map[string]string{
	".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".db": "optuna", ".sqlite": "optuna",
	".sqlite3": "optuna",
}

// importedTrials is what an import did, for scripts.
type importedTrials struct {
	Study   string            `json:"study"`
	Added   int               `json:"added"`
	Skipped []migrate.Skipped `json:"skipped"`
}

func newStudyImportTrialsCommand(a *app, r *remote) *cobra.Command {
	var output format
	var form string
	var optuna migrate.OptunaOptions
	var dry bool
	c := &cobra.Command{
		Use:   "import-trials STUDY FILE",
		Short: "Add trials that were evaluated elsewhere",
		Long:  importTrialsLong,
		Example: `  fantasia study import-trials digits old/trials.csv
  fantasia study import-trials digits optuna.db --optuna-study mnist --dry-run
  fantasia study import-trials digits postgresql://me@db.example.com/optuna --optuna-study mnist
  fantasia trial list old --status completed -o json | fantasia study import-trials digits - --format json`,
		ValidArgsFunction: r.completeStudy,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, path := args[0], args[1]
			url, shown := migrate.IsStorageURL(path), migrate.Redacted(path)
			switch {
			case url && form != "" && form != "optuna":
				return usagef(cmd, "--format is %q; %s is a storage of Optuna: want optuna", form, shown)
			case url:
				form = "optuna"
			case form == "":
				form = trialFormats[strings.ToLower(filepath.Ext(path))]
			}
			switch form {
			case "csv", "json", "optuna", "parquet":
			case "":
				return usagef(cmd, "the format of %s is unknown: want --format csv, json, parquet or optuna", path)
			default:
				return usagef(cmd, "--format is %q; want csv, json, parquet or optuna", form)
			}
			spec, err := r.specOf(cmd, name)
			if err != nil {
				return err
			}
			trials, skipped, err := a.readTrials(cmd.Context(), form, path, optuna, spec)
			if err != nil {
				return importError(shown, err)
			}
			result := importedTrials{Study: name, Skipped: append([]migrate.Skipped{}, skipped...)}
			if !dry {
				if err := r.addTrials(cmd, name, trials, &result); err != nil {
					return err
				}
			} else {
				result.Added = len(trials)
			}
			err = output.write(a.Stdout, result, func(w screen) error { return importedText(w, &result, dry) })
			if err == nil && result.Added == 0 {
				err = exitWith(ExitFailed, fmt.Errorf("%s: no trial could be imported", shown))
			}
			return err
		},
	}
	c.Flags().StringVar(&form, "format", "", "format of the file: csv, json, parquet or optuna (default: by its ending)")
	c.Flags().StringVar(&optuna.Study, "optuna-study", "", "`name` of the study in Optuna's storage, if it has several")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be added, and add nothing")
	addPython(c, &optuna)
	addOutput(c, &output)
	return c
}

// specOf returns the specification of a study.
func (r *remote) specOf(cmd *cobra.Command, name string) (*study.Spec, error) {
	found, err := ask(cmd, r, service.GetStudy, &fantasiav1.GetStudyRequest{Name: "studies/" + name})
	if err != nil {
		return nil, err
	}
	parsed, err := studyfile.Parse([]byte(found.GetStudy().GetStudyFile()))
	if err != nil {
		return nil, fmt.Errorf("read the file of study %s: %w", name, err)
	}
	return &parsed.Spec, nil
}

// readTrials reads a file of trials; "-" is standard input.
func (a *app) readTrials(ctx context.Context, form, path string, optuna migrate.OptunaOptions, spec *study.Spec) (_ []migrate.Evaluated,
	_ []migrate.Skipped, err error) {
	if form == "optuna" {
		return migrate.OptunaTrials(ctx, path, optuna, spec)
	}
	in, err := a.open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", migrate.ErrSource, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	switch form {
	case "csv":
		return migrate.CSV(in, spec)
	case "parquet":
		whole, err := migrate.ReadFile(in) // its directory is at the end
		if err != nil {
			return nil, nil, err
		}
		return migrate.Parquet(whole, spec)
	default:
		return migrate.JSON(in, spec)
	}
}

// addTrials adds the trials to a study. The server refuses those that do not fit.
func (r *remote) addTrials(cmd *cobra.Command, name string, trials []migrate.Evaluated, result *importedTrials) error {
	client, done, err := r.client(cmd)
	if err != nil {
		return err
	}
	defer done()
	seen := map[string]int{}
	for _, t := range trials {
		request, err := addRequest(name, &t, seen)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), r.timeout)
		_, err = client.AddTrial(ctx, connect.NewRequest(request))
		cancel()
		refused, _ := errors.AsType[*connect.Error](err)
		switch {
		case err == nil:
			result.Added++
		case refused != nil && refused.Code() == connect.CodeInvalidArgument:
			result.Skipped = append(result.Skipped, migrate.Skipped{Place: t.Place, Why: refused.Message()})
		default:
			return fmt.Errorf("after %d trials, at %s: %w", result.Added, t.Place, r.explain(err))
		}
	}
	return nil
}

// addRequest returns the request that adds a trial. Its id follows from the trial, and from
// how many equal ones came before, so that the same file adds each trial once.
func addRequest(name string, t *migrate.Evaluated, seen map[string]int) (*fantasiav1.AddTrialRequest, error) {
	known := maps.Clone(t.Metrics) // JSON has no NaN
	maps.DeleteFunc(known, func(_ string, v float64) bool { return math.IsNaN(v) })
	content, err := json.Marshal([]any{t.Point, t.Values, known})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Place, err)
	}
	seen[string(content)]++
	sum := sha256.Sum256(fmt.Appendf(content, " %d", seen[string(content)]))
	fields := map[string]any{}
	for _, parameter := range slices.Sorted(maps.Keys(t.Point)) {
		v := t.Point[parameter]
		if n, ok := v.(int64); ok {
			v = float64(n)
		}
		fields[parameter] = v
	}
	point, err := structpb.NewStruct(fields)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Place, err)
	}
	return &fantasiav1.AddTrialRequest{
		Parent: "studies/" + name, Parameters: point, Values: t.Values, Metrics: t.Metrics, RequestId: hex.EncodeToString(sum[:16]),
	}, nil
}

func importedText(w screen, r *importedTrials, dry bool) error {
	done := "%d trials are now in study %s, %d left out"
	if dry {
		done = "%d trials would be added to study %s, %d left out"
	}
	if err := say(w, done, r.Added, r.Study, len(r.Skipped)); err != nil {
		return err
	}
	for i, s := range r.Skipped {
		if i == maxListed {
			return say(w, "  and %d more; -o json lists all", len(r.Skipped)-maxListed)
		}
		if err := say(w, "  %s: %s", s.Place, s.Why); err != nil {
			return err
		}
	}
	return nil
}
