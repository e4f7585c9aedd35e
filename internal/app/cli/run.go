package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/app/workernode"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/internal/show/dashboard"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
	studyfile "github.com/fantasia-hpo/fantasia/study/file"
	"github.com/fantasia-hpo/fantasia/worker"
)

const runLong = `Runs a study on this machine: etcd, NATS, a coordinator and a worker start in one
process, and none of them opens a network port, except that --ui serves the dashboard
while the study runs. Everything is kept in a state directory. If the run is
interrupted or killed, the same command continues it and evaluates nothing twice.
Ctrl-C once ends cleanly; twice ends at once.

At its end the run writes report.html, result.json and trials.csv there. The report
has every picture of the study, and how to read it.

To continue a study that has ended, raise its budget.maxTrials. A change that does
not fit the evaluated trials (a parameter's range, the command, the optimiser) is
refused; --new starts over and keeps the old state beside the new one.

With -o json the last line of stdout is one object: the study, its state, the
numbers of trials, the best and the recommended point. Progress goes to stderr.`

// runFlags are the flags of run.
type runFlags struct {
	workers int
	state   string
	gpus    string
	keep    int64
	fresh   bool
	verbose bool
	ui      string
	learn   []string
	output  format
	// remote are the workers of other processes, if any, and says is told how they can tell the user
	// something. again are the words of a command other than run.
	remote *local.Remote
	says   *func(text string)
	again  []string
}

func newRunCommand(a *app) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run STUDY.yaml",
		Short: "Run a study on this machine",
		Long:  runLong,
		Example: `  fantasia run study.yaml
  fantasia run study.yaml --ui
  fantasia run study.yaml --workers 4 -o json | tail -1 | jq .best.parameters`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.workers < 0 || cmd.Flags().Changed("workers") && f.workers == 0 {
				return usagef(cmd, "--workers is %d; want 1 or more", f.workers)
			}
			if err := directory(cmd, f.state); err != nil {
				return err
			}
			ui, err := listenUI(cmd, "ui", f.ui)
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), args[0], f, ui)
		},
	}
	c.Flags().IntVar(&f.workers, "workers", 0, "number of trials to evaluate at once (default: the study's parallelism)")
	c.Flags().StringVar(&f.state, "state", "", "directory of the study's state (default: .fantasia/NAME, here or beside the study file)")
	c.Flags().StringVar(&f.gpus, "gpus", "auto", "GPUs to divide among the workers: auto, none, or a list such as 0-3 or amd:0,1")
	f.keep = worker.DefaultOptions().KeepTrials
	c.Flags().Var(workernode.Size(&f.keep), "keep-trials", "how much the files of ended trials may take before the oldest are removed; 0 "+
		"keeps all")
	c.Flags().BoolVar(&f.fresh, "new", false, "start over; the old state is kept under another name")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log more to fantasia.log in the state directory")
	c.Flags().StringVar(&f.ui, "ui", "", "serve the dashboard while the study runs, at `ADDRESS` of this machine")
	c.Flags().Lookup("ui").NoOptDefVal = uiAddress
	learnFlag(c, &f.learn)
	addOutput(c, &f.output)
	return c
}

// uiAddress is where the dashboard of a run is, unless another address is given.
const uiAddress = "localhost:8080"

// endGrowth is by how many percent the heap may grow between two collections at the end of a run, when all trials
// are in memory for a few seconds. Usual are 100, which would take twice their memory.
const endGrowth = 20

// listenUI listens for a dashboard at the address that a flag has; without an address it returns nil.
// The address must be one of this machine only, because the pages ask for no password.
func listenUI(cmd *cobra.Command, flag, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usagef(cmd, "--%s is %q; want a port of this machine, such as --%[1]s=%[3]s (the dashboard asks for no password; from "+
			"elsewhere, forward the port: ssh -L 8080:localhost:8080 MACHINE)", flag, address, uiAddress)
	}
	l, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", address)
	if err != nil {
		return nil, usagef(cmd, "--%s: %v; give another port, such as --%[1]s=localhost:8081", flag, err)
	}
	return l, nil
}

// studyText reads a study file, of one that is too large only so much that parsing says so.
func studyText(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the study: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, studyfile.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the study: %w", err)
	}
	return text, nil
}

// readStudy reads a study file. A relative working directory is relative to the file.
func readStudy(path string) (*study.Study, error) {
	content, err := studyText(path)
	if err != nil {
		return nil, exitWith(ExitUsage, err)
	}
	s, err := inject.ParseStudy(path, content)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("find the study's directory: %w", err)
	}
	if len(s.Spec.Trial.Command) > 0 && !filepath.IsAbs(s.Spec.Trial.Workdir) {
		s.Spec.Trial.Workdir = filepath.Join(dir, s.Spec.Trial.Workdir)
	}
	return s, nil
}

// run runs a study, with its dashboard at ui unless that is nil. It closes ui.
func (a *app) run(ctx context.Context, file string, f runFlags, ui net.Listener) error {
	if ui != nil {
		defer func() { _ = ui.Close() }() // again, if the run has begun
	}
	s, err := readStudy(file)
	if err != nil {
		return err
	}
	if s.Spec.ByClients() {
		return exitWith(ExitUsage, fmt.Errorf("%s: the study has no command to run (spec.trial.command): clients of the API ask for its trials; "+
			"create it on a server with fantasia study create, or add a command", file))
	}
	if s.Spec.Trial.Job != nil {
		return exitWith(ExitUsage, fmt.Errorf("%s: the study's trials are Jobs of Kubernetes (spec.trial.job): apply it to a cluster with "+
			"kubectl apply", file))
	}
	if f.state == "" {
		var note string
		if f.state, note = stateOf(file, s.Metadata.Name); note != "" {
			fmt.Fprintln(a.Stderr, note)
		}
	}
	if f.fresh {
		old, err := local.SetAside(f.state)
		if err != nil {
			return err
		}
		if old != "" {
			fmt.Fprintf(a.Stderr, "the old state is kept in %s\n", old)
		}
	}
	o := local.Options{Study: s, State: f.state, Workers: f.workers, GPUs: f.gpus, KeepTrials: f.keep, Version: a.Version,
		Curves: display.ForCurves}
	if len(f.learn) > 0 {
		o.Learn = func(s, begun *study.Study) (*study.Study, error) {
			if begun != nil {
				return s, learned(begun, f.learn)
			}
			return a.learnFrom(file, s, f.learn)
		}
	}
	if f.verbose {
		o.Level = slog.LevelDebug
	}
	width, live := terminal(a.Stderr)
	progress := display.NewProgress(ctx, direct(a.Stderr), live)
	if o.UI = ui; ui != nil {
		o.Shown = func() {
			progress.Say("dashboard    http://" + ui.Addr().String() + dashboard.Path + "studies/" + s.Metadata.Name)
		}
	}
	if o.Remote = f.remote; f.says != nil {
		*f.says = progress.Say
	}
	forecast := &display.Forecast{}
	defer forecast.Wait()
	forecasting, cancel := context.WithCancel(ctx)
	defer cancel()
	o.Progress = func(p coordinator.Progress, trials local.Trials) {
		now := display.NewNow(&p, time.Now())
		forecast.Add(forecasting, &now, display.OfRecords(&p.Study.Definition, trials))
		progress.Show(now)
	}
	var restore func()
	o.Ended, restore = saveMemory()
	defer restore()
	result, err := local.Run(ctx, o)
	progress.Close()
	interrupted := errors.Is(err, local.ErrInterrupted)
	switch {
	case errors.Is(err, local.ErrIncompatible):
		return exitWith(ExitUsage, fmt.Errorf("%w\nundo the change, or start over with --new (the old state is kept)", err))
	case err != nil && (!interrupted || result == nil):
		return err
	}
	table := export.Of(&result.Study.Definition.Spec, result.List())
	if err := display.WriteFiles(f.state, result, table.CSV); err != nil {
		return err
	}
	if err := display.WriteReport(ctx, f.state, result, a.Version); err != nil {
		return err
	}
	if err := a.show(result, file, f, width); err != nil {
		return err
	}
	switch {
	case interrupted:
		return exitWith(ExitInterrupted, nil)
	case result.Status.State == study.Failed || result.Status.Counts.Completed == 0:
		return exitWith(ExitFailed, nil)
	}
	return nil
}

// saveMemory returns what has the garbage collector keep the heap small at the end of a run, and what undoes it.
func saveMemory() (save, restore func()) {
	usual := debug.SetGCPercent(-1)
	debug.SetGCPercent(usual)
	return func() { debug.SetGCPercent(min(usual, endGrowth)) }, func() { debug.SetGCPercent(usual) }
}

// show writes the result to stdout; with YAML or JSON nothing else goes there.
func (a *app) show(r *display.Result, file string, f runFlags, width int) error {
	at := display.Place{File: file, State: f.state, Again: f.again, Width: width}
	if f.output == formatText {
		if at.Width, at.Wrap = terminal(a.Stdout); !at.Wrap {
			at.Width = width
		}
		return display.Summarize(a.Stdout, r, at)
	}
	_, at.Wrap = terminal(a.Stderr)
	if err := display.Summarize(a.Stderr, r, at); err != nil {
		return err
	}
	if f.output == formatYAML {
		return writeYAML(a.Stdout, display.View(r))
	}
	return writeJSON(a.Stdout, display.View(r), "")
}
