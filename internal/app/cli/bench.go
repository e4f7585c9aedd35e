package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/bench"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
)

const benchLong = `Compares optimisers, or settings of an optimiser, in virtual time. The durations of
evaluations are drawn from a distribution instead of waited for, so hours on a
cluster take seconds. Runs use test functions with known minima, or your study's
program.

Modes: sequential has one worker; sync asks for a batch of as many points as there
are workers and waits for the slowest; async asks for one point whenever a worker
is free. If both sync and async run, async continues until sync ends. Its speed-up
is how much earlier it reaches the regret that sync has at the checkpoint, or 0 if
it does not reach it. All optimisers and modes get the same durations.

Distributions (--law), all with mean 1: constant, uniform (from 0 to 2),
half-normal, exponential, lognormal (σ=1; lognormal:0.5 for another) and pareto
(shape 2.5; pareto:1.5 for another).

Each run is saved to runs.jsonl in --out when it ends. The same command therefore
continues where it was interrupted, and further optimisers or seeds only add their
own runs. Tables and plots are written beside it. Runs of another version or
revision of Fantasia are not used; in a build without a version, use --new after
a change.`

const benchExample = `  fantasia bench --suite standard --workers 8 --law lognormal --seeds 0-4
  fantasia bench --optimizer 'sobol,random' --function branin,hartmann6 --modes sequential
  fantasia bench --study study.yaml --modes async --seeds 0-9 -o json`

// The files that bench writes into its directory, besides the plots.
const (
	benchRuns   = "runs.jsonl"
	benchReport = "report.md"
)

// unversioned is the version of a program that was built without a version.
const unversioned = "dev"

// benchFlags are the flags of bench.
type benchFlags struct {
	optimizers, settings []string
	functions, suites    []string
	study                string
	noise, failing       float64
	modes, laws, seeds   string
	durations, charge    string
	evaluation           time.Duration
	workers, trials      int
	halfway              int
	jobs                 int
	out                  string
	fresh                bool
	output               format
}

func newBenchCommand(a *app) *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Compare optimisers in virtual time",
		Long:    benchLong,
		Example: benchExample,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := f.plan(cmd, a)
			if err != nil {
				return usageError(cmd, err)
			}
			return a.bench(cmd.Context(), plan, f)
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.optimizers, "optimizer", nil, "optimisers to compare, such as gp,random or 'gp,small=gp{key=value}' (default "+
		""+registry.Default+",random; with --study the study's)")
	flags.StringArrayVar(&f.settings, "set", nil, "a setting `key=value` for every optimiser that has it")
	flags.StringSliceVar(&f.functions, "function", nil, "test functions to minimise (default branin,hartmann6)")
	flags.StringSliceVar(&f.suites, "suite", nil, "suites of test functions")
	flags.Float64Var(&f.noise, "noise", 0, "standard deviation of normal noise on the functions' values")
	flags.Float64Var(&f.failing, "failing", 0, "probability that an evaluation of a test function fails")
	flags.StringVar(&f.study, "study", "", "study `FILE` whose program to evaluate; in stream mode it starts once a run")
	flags.StringVar(&f.modes, "modes", "sync,async", "modes: sequential, sync, async")
	flags.StringVar(&f.laws, "law", "lognormal", "distributions of durations: "+strings.Join(bench.LawNames(), ", "))
	flags.StringVar(&f.durations, "durations", string(bench.Drawn), "where durations come from: drawn (from the law), by-point (longer for "+
		"larger values of the first parameter) or measured (with --study)")
	flags.StringVar(&f.charge, "charge", "0", "time that a suggestion takes: a number of mean evaluations, or measured")
	flags.DurationVar(&f.evaluation, "evaluation", time.Minute, "mean duration of an evaluation, for --charge measured")
	flags.IntVar(&f.workers, "workers", 8, "number of workers of sync and async")
	flags.IntVar(&f.trials, "trials", 64, "number of evaluations of each run")
	flags.IntVar(&f.halfway, "checkpoint", 0, "number of evaluations of sync whose regret async must reach (default: half of the trials)")
	flags.StringVar(&f.seeds, "seeds", "0-4", "seeds, such as 0-4 or 1,2,7")
	flags.IntVar(&f.jobs, "jobs", 0, "number of runs at once (default: the number of cores, or 1 if something is measured)")
	flags.StringVar(&f.out, "out", filepath.Join(".fantasia", "bench"), "directory of runs, tables and plots")
	flags.BoolVar(&f.fresh, "new", false, "start over; old runs are kept under another name")
	addOutput(c, &f.output)
	return c
}

// bench plays a plan's runs and shows the result.
func (a *app) bench(ctx context.Context, plan *bench.Plan, f benchFlags) (err error) {
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return fmt.Errorf("create the directory of runs: %w", err)
	}
	path := filepath.Join(f.out, benchRuns)
	if _, err := os.Lstat(path); f.fresh && err == nil {
		old, err := local.Aside(path)
		if err != nil {
			return fmt.Errorf("rename the old runs: %w", err)
		}
		fmt.Fprintf(a.Stderr, "the old runs are kept in %s\n", old)
	}
	store, err := bench.OpenStore(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if store.Unreadable > 0 {
		fmt.Fprintf(a.Stderr, "%s: %s cannot be read and will be repeated\n", path, count(store.Unreadable, "run"))
	}
	progress := newBenchProgress(a.Stderr)
	runner := &bench.Runner{
		Plan: plan, Store: store, Jobs: f.jobs, NewOptimizer: registry.New, Progress: progress.show,
	}
	groups, failure := runner.Play(ctx)
	progress.close()
	if failure != nil && ctx.Err() == nil {
		if errors.Is(failure, bench.ErrBroken) {
			return exitWith(ExitFailed, failure)
		}
		return failure
	}
	summary := bench.Summarize(plan, groups, f.checkpoint())
	if err := a.showBench(plan, groups, summary, f); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(a.Stderr, "interrupted: %d of %s are kept in %s; run the same command to continue\n", progress.last.Done,
			count(plan.Size(), "run"), path)
		return exitWith(ExitInterrupted, nil)
	case summary.Empty():
		return exitWith(ExitFailed, errors.New("no run completed"))
	}
	return nil
}

// benchVersion is the version under which runs are kept. A build without a version uses
// the revision that it was built from, if known.
func (a *app) benchVersion() string {
	info, ok := debug.ReadBuildInfo()
	if a.Version != unversioned || !ok {
		return a.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return a.Version + "+" + s.Value
		}
	}
	return a.Version
}

// showBench writes tables and plots into the directory and the result to stdout.
func (a *app) showBench(plan *bench.Plan, groups []*bench.Group, s *bench.Summary, f benchFlags) error {
	plots, err := bench.WritePlots(f.out, plan, groups)
	if err != nil {
		return err
	}
	tables := s.Tables()
	var text bytes.Buffer
	if err := bench.WriteMarkdown(&text, tables); err != nil {
		return err
	}
	report := filepath.Join(f.out, benchReport)
	if err := renameio.WriteFile(report, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	s.Files = append([]string{filepath.Join(f.out, benchRuns), report}, plots...)
	return f.output.write(a.Stdout, s, func(w screen) error {
		for _, t := range tables {
			if err := say(w, "%s", t.Title); err != nil {
				return err
			}
			if err := w.table(columns(t.Heads), t.Rows); err != nil {
				return err
			}
			fmt.Fprintln(w)
		}
		return say(w, "runs, tables and %s are in %s", count(len(plots), "plot"), f.out)
	})
}

// columns returns the columns of a table of a benchmark, the first of which names the
// rows. The last ones are dropped first.
func columns(heads []string) []layout.Column {
	all := make([]layout.Column, len(heads))
	for i, h := range heads {
		all[i] = layout.Column{Head: strings.ToUpper(h), Rank: i}
	}
	return all
}

// benchProgress shows the progress of a benchmark.
type benchProgress struct {
	w     io.Writer
	live  bool
	start time.Time
	told  time.Time
	last  bench.Progress
}

// benchProgressEvery is the time between progress lines if no terminal shows it live.
const benchProgressEvery = 10 * time.Second

func newBenchProgress(w io.Writer) *benchProgress {
	_, live := terminal(w)
	return &benchProgress{w: direct(w), live: live, start: time.Now()}
}

func (p *benchProgress) show(now bench.Progress) {
	p.last = now
	played := now.Done - now.Kept
	if now.Done < now.All && time.Since(p.told) < benchProgressEvery && (!p.live || played == 0) {
		return
	}
	p.told = time.Now()
	line := fmt.Sprintf("%d/%d runs", now.Done, now.All)
	if now.Kept > 0 {
		line += fmt.Sprintf(" (%d from before)", now.Kept)
	}
	if left := now.All - now.Done; played > 0 && left > 0 {
		per := time.Since(p.start) / time.Duration(played)
		line += fmt.Sprintf(", about %s left", human(per*time.Duration(left)))
	}
	line += fmt.Sprintf("; %s", &now.Last.Spec)
	if p.live {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

func (p *benchProgress) close() {
	if p.live && !p.told.IsZero() {
		fmt.Fprintln(p.w)
	}
}
