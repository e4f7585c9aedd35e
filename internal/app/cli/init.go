package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/base/durable"
	"github.com/fantasia-hpo/fantasia/internal/exchange/draft"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// keptOutput is how much of a program's last output is searched for metrics.
const keptOutput = 1 << 20

// drafted are the flags of `fantasia init`.
type drafted struct {
	minimize, maximize []string
	path, name         string
	trials             int
	idle               bool
}

func newInitCommand(a *app) *cobra.Command {
	var d drafted
	c := &cobra.Command{
		Use:   "init (--minimize METRIC | --maximize METRIC) -- PROGRAM ARGUMENT...",
		Short: "Write a first study file for a program",
		Long: `Writes a study file from the command line by which you start your program. Each
argument with a number, such as --lr=0.1, --lr 0.1 or lr=0.1, becomes a parameter
with a guessed range: look at these before you tune. The program runs once as it
is, so that the metric is found in its output. The first trial has the arguments
as they are.`,
		Example: `  fantasia init --minimize loss -- python3 train.py --lr=0.1 --layers 3 --optimizer adam
  fantasia init --maximize accuracy --minimize latency -- ./train lr=0.1 depth=3
  fantasia check train.yaml --try`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 || len(args) == 0 {
				return usagef(cmd, "write your program and its arguments after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.draft(cmd.Context(), d, args)
		},
	}
	c.Flags().StringArrayVar(&d.minimize, "minimize", nil, "metric to make small; may be repeated")
	c.Flags().StringArrayVar(&d.maximize, "maximize", nil, "metric to make large; may be repeated")
	c.Flags().StringVarP(&d.path, "file", "f", "", "path of the study file (default: the study's name and .yaml)")
	c.Flags().StringVar(&d.name, "name", "", "name of the study (default: that of the script or program)")
	c.Flags().IntVar(&d.trials, "trials", 40, "how many trials to run")
	c.Flags().BoolVar(&d.idle, "no-run", false, "do not run the program, which must report its metrics itself")
	return c
}

// draft writes the study file.
func (a *app) draft(ctx context.Context, d drafted, argv []string) error {
	if d.name == "" {
		d.name = draft.Name(argv)
	}
	if d.path == "" {
		d.path = d.name + ".yaml"
	}
	if _, err := os.Stat(d.path); err == nil {
		return refused("%s exists: choose another path with --file", d.path)
	}
	command := draft.Read(argv)
	if len(command.Tuned()) == 0 {
		return refused("no argument of %s has a number to tune: pass the program its settings as --NAME=VALUE, --NAME VALUE or NAME=VALUE",
			display.Line(argv))
	}
	s := draft.Study{Name: d.name, Objectives: d.objectives(), Trials: d.trials, Workdir: workdir(d.path)}
	if !d.idle {
		output, err := a.runOnce(ctx, argv)
		if err != nil {
			return err
		}
		if s.Pattern, err = metricsOf(output, study.MetricNames(s.Objectives)); err != nil {
			return exitWith(ExitUsage, err)
		}
	} else if len(s.Objectives) == 0 {
		return refused("name the metric to tune with --minimize or --maximize")
	}
	text := command.File(s)
	if _, err := inject.ParseStudy(d.path, text); err != nil {
		return err
	}
	if err := durable.WriteOutput(d.path, text, 0o644); err != nil {
		return fmt.Errorf("write the study file: %w", err)
	}
	return say(a.Stdout, "%s\nwritten to %s; look at the ranges, then:\n  fantasia check %[3]s --try\n  fantasia run %[3]s",
		strings.TrimSuffix(string(text), "\n"), d.path, display.Line([]string{d.path}))
}

// refused is the error of a command line that makes no study.
func refused(format string, args ...any) error {
	return exitWith(ExitUsage, fmt.Errorf(format, args...))
}

// objectives are the metrics of the flags: those to maximise first.
func (d drafted) objectives() []study.Objective {
	var all []study.Objective
	for _, m := range d.maximize {
		all = append(all, study.Objective{Metric: m, Direction: study.Maximize})
	}
	for _, m := range d.minimize {
		all = append(all, study.Objective{Metric: m, Direction: study.Minimize})
	}
	return all
}

// workdir returns the working directory, relative to the folder of the study file.
func workdir(path string) string {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return ""
	}
	here, err := os.Getwd()
	if err != nil {
		return ""
	}
	relative, err := filepath.Rel(dir, here)
	if err != nil {
		return here
	}
	return relative
}

// metricsOf returns the pattern that finds the metrics in the output; empty if the program reports
// them itself.
func metricsOf(output string, metrics []string) (pattern string, err error) {
	reported := map[string]bool{}
	for line := range strings.Lines(output) {
		reports, _ := report.Parse([]byte(line)) // what cannot be read is no metric either
		for _, r := range reports {
			for name := range r.Metrics {
				reported[name] = true
			}
		}
	}
	missing := slices.IndexFunc(metrics, func(m string) bool { return !reported[m] })
	if len(metrics) > 0 && missing < 0 {
		return "", nil
	}
	seen := draft.Metrics(output)
	switch pattern, _ := report.Guess(output, metrics...); {
	case len(metrics) > 0 && pattern != "":
		return pattern, nil
	case len(metrics) > 0 && len(seen) == 0:
		return "", fmt.Errorf("the program's output has no number after %q: let it print %s=0.5, or report as docs/tune/attach.md says",
			metrics[missing], metrics[missing])
	case len(metrics) > 0:
		return "", fmt.Errorf("the program's output has no number after %q; it has numbers after %s", metrics[missing], strings.Join(seen, ", "))
	case len(seen) == 0:
		return "", errors.New("name the metric to tune with --minimize or --maximize; the program's output has none such as loss=0.5")
	default:
		return "", fmt.Errorf("name the metric to tune with --minimize or --maximize; the program's output has numbers after %s",
			strings.Join(seen, ", "))
	}
}

// runOnce runs the program as it is, shows its output, and returns the last of it.
func (a *app) runOnce(ctx context.Context, argv []string) (string, error) {
	if err := say(a.Stderr, "running %s once; its output:", display.Line(argv)); err != nil {
		return "", err
	}
	kept := &tail{}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	both := io.MultiWriter(kept, a.Stderr)
	cmd.Stdout, cmd.Stderr = both, both // one writer, so that there is one goroutine
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return "", refused("start the program: %w", err)
	case err != nil:
		return "", exitWith(ExitFailed, fmt.Errorf("the program failed (%w): mend its command line first", err))
	}
	return string(kept.last), nil
}

// tail keeps the last bytes that are written to it.
type tail struct{ last []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p...)
	if extra := len(t.last) - keptOutput; extra > keptOutput { // cut seldom, not at each write
		t.last = bytes.Clone(t.last[extra:])
	}
	return len(p), nil
}
