package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/base/durable"
	"github.com/fantasia-hpo/fantasia/internal/exchange/migrate"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
)

func newImportCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "import",
		Short: "Convert studies of other tuners to study files",
	}, newImportKatibCommand(a), newImportOptunaCommand(a))
}

func newImportKatibCommand(a *app) *cobra.Command {
	var template string
	var o migrate.KatibOptions
	c := &cobra.Command{
		Use:   "katib EXPERIMENT.yaml",
		Short: "Convert an Experiment of Katib",
		Long: `Prints a study file with the same search space and objective. With --template it
also writes the trial's template for kubeworker. With --job the study brings the
trial's Job itself, as spec.trial.job; its namespace must allow that. Whatever has
no counterpart is listed on stderr and in comments. "-" reads standard input.`,
		Example: `  fantasia import katib experiment.yaml > study.yaml
  kubectl get experiment mnist -o yaml | fantasia import katib - --template job.yaml > study.yaml
  fantasia import katib experiment.yaml --job | kubectl apply --namespace team-a -f -`,
		RunE: func(_ *cobra.Command, args []string) error {
			if o.Job && template != "" {
				return exitWith(ExitUsage, fmt.Errorf("--template %s: with --job the template is in the study; want one of the two", template))
			}
			source, err := a.readFile(args[0])
			if err != nil {
				return exitWith(ExitUsage, fmt.Errorf("read the experiment: %w", err))
			}
			r, err := migrate.Katib(source, o)
			if err != nil {
				return importError(args[0], err)
			}
			if template != "" {
				if err := durable.WriteOutput(template, r.Template, 0o644); err != nil {
					return fmt.Errorf("write the template: %w", err)
				}
				r.Notes = append(r.Notes, fmt.Sprintf("the trial's template is in %s: %s", template,
					display.Line([]string{"kubeworker", "--template", template, "--container", r.Container})))
			}
			return a.showImport(r)
		},
	}
	c.Flags().StringVar(&template, "template", "", "write the trial's template to this file, for kubeworker")
	c.Flags().BoolVar(&o.Job, "job", false, "put the trial's Job into the study, as spec.trial.job")
	return c
}

func newImportOptunaCommand(a *app) *cobra.Command {
	var o migrate.OptunaOptions
	c := &cobra.Command{
		Use:   "optuna STORAGE",
		Short: "Convert a study in a storage of Optuna",
		Long: `Prints a study file with the search space that the trials used, and with the best
trials as initial points. STORAGE is a file of SQLite or of a journal, or the URL that
Optuna has: sqlite:///…, mysql://USER@HOST/DATABASE or postgresql://…. A password can be
in PGPASSWORD or MYSQL_PWD instead. A database is read by a Python with Optuna: that of
--python, of the active environment, or python3. Optuna stores neither the program nor
the conditions between parameters: what to add is listed on stderr and in comments.`,
		Example: `  fantasia import optuna optuna.db --study mnist --initial 5 > study.yaml
  fantasia import optuna mysql://me@db.example.com/optuna --study mnist > study.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Initial < 0 {
				return exitWith(ExitUsage, fmt.Errorf("--initial is %d; want 0 or more", o.Initial))
			}
			r, err := migrate.Optuna(cmd.Context(), args[0], o)
			if err != nil {
				return importError(migrate.Redacted(args[0]), err)
			}
			return a.showImport(r)
		},
	}
	c.Flags().StringVar(&o.Study, "study", "", "name of the study (required if the storage has several)")
	c.Flags().IntVar(&o.Initial, "initial", 3, "number of the best trials to evaluate again first")
	addPython(c, &o)
	return c
}

// addPython adds the flag that says by what a database of Optuna is read.
func addPython(c *cobra.Command, o *migrate.OptunaOptions) {
	c.Flags().StringVar(&o.Python, "python", "", "`interpreter` with Optuna that reads its databases (default: that of VIRTUAL_ENV or "+
		"CONDA_PREFIX, or python3)")
}

// importError is a usage error if the source is at fault.
func importError(path string, err error) error {
	err = fmt.Errorf("%s: %w", path, err)
	if errors.Is(err, migrate.ErrSource) {
		return exitWith(ExitUsage, err)
	}
	return err
}

func (a *app) showImport(r *migrate.Result) error {
	for _, n := range r.Notes {
		fmt.Fprintln(a.Stderr, "note:", n)
	}
	return say(a.Stdout, "%s", string(r.Study[:len(r.Study)-1]))
}

// readFile reads a file; "-" means standard input.
func (a *app) readFile(path string) ([]byte, error) {
	const most = 8 << 20
	f, err := a.open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()                   // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, most+1)) // a pipe may be endless
	if err == nil && len(text) > most {
		if path == "-" {
			path = "standard input"
		}
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return text, err
}

// open opens a file to read; "-" means standard input.
func (a *app) open(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	return os.Open(path)
}
