package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/replay"
	"github.com/fantasia-hpo/fantasia/internal/app/bench"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

const replayLong = `Asks the optimiser for every suggestion of a study again, with what it knew then, and
compares the answers with the trials, bit for bit: the points, where they come from and
the reasons. It ends with the first trial that differs, and says how; the exit code is
then 1. Of a study with a fidelity, it also decides again which trials are promoted.

Nothing is evaluated and nothing is changed. The records are read from etcd, as a
coordinator reads them, with --state from the state directory of fantasia run or serve,
or with --backup from a file of fantasia backup. Another version of Fantasia may suggest
other points.

--workers N plays the study once more in virtual time, as it was run and with N workers.
Each point gets the result and the duration of the nearest trial. The table shows the
best value after the same number of trials: what it costs to run more at once.`

// maxReplayWorkers bounds the workers of a replay.
const maxReplayWorkers = 10_000

// replayFlags are the flags of replay.
type replayFlags struct {
	store   store
	backup  string
	workers int
	seeds   int
}

func newReplayCommand(a *app) *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay STUDY",
		Short: "Make every suggestion of a study again",
		Long:  replayLong,
		Example: `  fantasia replay digits --state .fantasia/digits
  fantasia replay digits --backup studies.backup --workers 32`,
		RunE: func(cmd *cobra.Command, args []string) error {
			set := cmd.Flags().Changed
			switch {
			case f.backup != "" && (set("etcd") || set("state")):
				return usagef(cmd, "--backup, --etcd and --state: set only one")
			case set("workers") && (f.workers < 1 || f.workers > maxReplayWorkers):
				return usagef(cmd, "--workers is %d; want 1 to %d", f.workers, maxReplayWorkers)
			case f.seeds < 1:
				return usagef(cmd, "--seeds is %d; want 1 or more", f.seeds)
			}
			records, err := f.readRecords(cmd, args[0])
			if err != nil {
				return err
			}
			return a.replay(cmd.Context(), records, &f)
		},
	}
	f.store.flags(c, "read the state `DIRECTORY` of fantasia run or serve instead of --etcd")
	c.Flags().StringVar(&f.backup, "backup", "", "read a `FILE` of fantasia backup instead of --etcd")
	c.Flags().IntVar(&f.workers, "workers", 0, "play the study in virtual time with so many workers as well")
	c.Flags().IntVar(&f.seeds, "seeds", 5, "how often to play it, each time with another seed, for --workers")
	return c
}

// readRecords returns the records of a study.
func (f *replayFlags) readRecords(cmd *cobra.Command, name string) (*ledger.Records, error) {
	if f.backup != "" {
		return readBackup(f.backup, name)
	}
	client, done, err := f.store.open(cmd, true)
	if err != nil {
		return nil, err
	}
	return readStore(cmd.Context(), client, done, name)
}

// readStore returns the records of a study in etcd, and calls done.
func readStore(ctx context.Context, client *clientv3.Client, done func() error, name string) (_ *ledger.Records, err error) {
	defer func() { err = errors.Join(err, done()) }()
	l := ledger.New(client, ledger.Options{})
	id, err := l.ID(ctx, name)
	if err != nil {
		return nil, err
	}
	return l.LoadStudy(ctx, id)
}

// readBackup returns the records of a study in a backup.
func readBackup(path, name string) (_ *ledger.Records, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, exitWith(ExitUsage, fmt.Errorf("read the backup: %w", err))
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	collector := ledger.NewCollector(name)
	if _, err := backup.Read(file, collector.Put); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return collector.Records()
}

// replay replays a study and shows the result.
func (a *app) replay(ctx context.Context, records *ledger.Records, f *replayFlags) error {
	definition := &records.Study.Definition
	if i := slices.IndexFunc(definition.Spec.Parameters, func(p study.Parameter) bool { return p.Type == study.Fidelity }); i >= 0 &&
		f.workers > 0 {
		return exitWith(ExitUsage, fmt.Errorf("--workers: parameter %s of study %s is a fidelity, and the results of two levels do not "+
			"compare; want a study without one",
			definition.Spec.Parameters[i].Name, definition.Metadata.Name))
	}
	newOptimizer := func() (optimizer.Optimizer, error) { return inject.NewOptimizer(definition.Spec.Algorithm) }
	o, err := newOptimizer()
	if err != nil {
		return err
	}
	name := definition.Metadata.Name
	found, err := replay.Run(ctx, records.Study, records.Trials, replay.Optimizers{Suggest: o, Fallback: sobol.New()}, nil)
	if err != nil {
		return fmt.Errorf("replay study %s: %w", name, err)
	}
	if err := say(a.Stdout, "%s", strings.Join(replayLines(name, found), "\n")); err != nil {
		return err
	}
	if found.First != nil {
		return exitWith(ExitError, nil)
	}
	if f.workers == 0 {
		return nil
	}
	return a.replayWorkers(ctx, records, newOptimizer, f)
}

// replayLines tell people what a replay has found.
func replayLines(name string, found *replay.Findings) []string {
	var lines []string
	switch {
	case found.First != nil:
		lines = append(lines, fmt.Sprintf("study %s: %s", name, found.First), fmt.Sprintf("the %s before are the recorded ones, bit for bit",
			count(found.Same, "suggestion")))
	case found.Until > 0:
		lines = append(lines, fmt.Sprintf("study %s: %s made again, bit for bit; from trial %d on it cannot be compared: %s", name,
			count(found.Same, "suggestion"), found.Until, found.Why))
	default:
		lines = append(lines, fmt.Sprintf("study %s: %s made again, bit for bit", name, count(found.Same, "suggestion")))
	}
	if found.Fallbacks > 0 {
		lines = append(lines, fmt.Sprintf("%d of them are fallbacks, because the optimiser was too slow", found.Fallbacks))
	}
	if found.Promoted > 0 {
		lines = append(lines, count(found.Promoted, "promotion")+" decided again, with the same trials")
	}
	if found.Others > 0 {
		lines = append(lines, count(found.Others, "trial")+" that people asked for or added: not compared")
	}
	if found.Earlier > 0 {
		lines = append(lines, count(found.Earlier, "trial")+" of the space before the last edit: not compared")
	}
	if len(found.Cut) > 0 {
		lines = append(lines, fmt.Sprintf("%s whose optimiser ran out of time, so that its answer depended on the machine: not compared",
			count(len(found.Cut), "trial")))
	}
	return lines
}

// replayWorkers shows what other numbers of workers would have found.
func (a *app) replayWorkers(ctx context.Context, records *ledger.Records, newOptimizer func() (optimizer.Optimizer, error),
	f *replayFlags) error {
	definition := &records.Study.Definition
	s, err := celspace.Of(definition)
	if err != nil {
		return err
	}
	objective, trials, err := recorded(records, s)
	if err != nil {
		return fmt.Errorf("replay study %s with %s: %w", definition.Metadata.Name, count(f.workers, "worker"), err)
	}
	asRun := max(1, definition.Spec.Parallelism)
	workers := []int{1, asRun, f.workers}
	slices.Sort(workers)
	workers = slices.Compact(workers)
	seeds := make([]uint64, f.seeds)
	for i := range seeds {
		seeds[i] = definition.Spec.Algorithm.Seed + uint64(i)
	}
	played, err := bench.Parallelisms(ctx, newOptimizer, objective, trials, workers, seeds)
	if err != nil {
		return fmt.Errorf("replay study %s: %w", definition.Metadata.Name, err)
	}
	if err := say(a.Stdout, "\nin virtual time over the study's own results, %s:", count(f.seeds, "seed")); err != nil {
		return err
	}
	var rows [][]string
	var before, after bench.Parallelism
	for _, p := range played {
		label := fmt.Sprint(p.Workers)
		if p.Workers == asRun {
			label, before = label+" as run", p
		}
		if p.Workers == f.workers {
			after = p
		}
		rows = append(rows, []string{
			label, fmt.Sprintf("%s ± %.2g", number(p.Best), p.Error),
			time.Duration(p.Seconds * float64(time.Second)).Round(time.Second / 10).String(),
		})
	}
	heads := []string{"workers", fmt.Sprintf("best after %d trials", trials), "time"}
	if err := layout.Table(a.Stdout, 0, columns(heads), rows); err != nil {
		return err
	}
	cost := definition.Spec.FirstObjective().Direction.Cost(after.Best) - definition.Spec.FirstObjective().Direction.Cost(before.Best)
	word := "costs"
	if cost < 0 {
		word = "gains"
	}
	return say(a.Stdout, "%s instead of %d %s %s, with a standard error of %.2g", count(f.workers, "worker"), asRun, word,
		number(math.Abs(cost)), math.Hypot(after.Error, before.Error))
}

// recorded returns the objective of a study's results, and how many trials they are.
func recorded(records *ledger.Records, s *space.Space) (*bench.Objective, int, error) {
	var list []bench.Record
	for i := range records.Trials {
		t := &records.Trials[i]
		point, err := s.Normalize(t.Point)
		o, told := engine.Observation(&records.Study.Definition.Spec, t) // points outside of an edited space have no place
		if !told || err != nil || t.Source == optimizer.SourceAdded {
			continue
		}
		one := bench.Record{Point: point, Outcome: o.Outcome}
		if !t.Times.Started.IsZero() {
			one.Seconds = max(0, t.Times.Ended.Sub(t.Times.Started).Seconds())
		}
		switch {
		case len(o.Values) > 0: // a pruned trial's is what it had reached
			one.Outcome, one.Value = optimizer.OutcomeCompleted, o.Values.First()
		case o.Outcome == optimizer.OutcomePruned:
			one.Outcome = optimizer.OutcomeFailed
		}
		list = append(list, one)
	}
	objective, err := bench.NewRecorded(records.Study.Definition.Metadata.Name, s, records.Study.Definition.Spec.FirstObjective().Direction,
		list)
	return objective, len(list), err
}
