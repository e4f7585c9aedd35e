// Command curves plays tuners on trainings that were recorded to their end, in virtual time, and
// prints a line of JSON for each run: `make curves`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/study"
)

// worths are the numbers of whole trainings' worth of epochs at which runs are compared.
var worths = []int{5, 10, 20, 40}

func main() { lifecycle.Main("curves", runAll) }

// tuners returns how each tuner's policy is made, by its name.
func tuners(workers int) map[string]func(w *world) (policy, error) {
	all := map[string]func(w *world) (policy, error){
		"model":               func(w *world) (policy, error) { return newModelled(w, true, true), nil },
		"model-stop":          func(w *world) (policy, error) { return newModelled(w, false, true), nil },
		"model-anywhere":      func(w *world) (policy, error) { return newModelled(w, true, false), nil },
		"model-stop-anywhere": func(w *world) (policy, error) { return newModelled(w, false, false), nil },
	}
	for _, algorithm := range []string{"random", "tpe", "hebo"} {
		for _, rule := range []string{"", "asha", "median", "model", "model-unknown", "model-blind"} {
			var stopping *study.EarlyStopping
			name := algorithm
			if rule != "" {
				first, _, _ := strings.Cut(rule, "-")
				stopping, name = &study.EarlyStopping{Name: first}, name+"+"+rule
			}
			all[name] = func(w *world) (policy, error) {
				if rule == pruner.Model || rule == "model-blind" { // told how long a training is
					stopping.Settings = map[string]any{"maxSteps": float64(w.epochs)}
				}
				return newRuled(w, algorithm, stopping, workers, rule != pruner.Model)
			}
		}
	}
	return all
}

func runAll(ctx context.Context) error {
	folder := flag.String("taskset", "", "the folder of TaskSet's tasks")
	between := flag.Bool("between", false, "play at a point the mean of the recorded trainings around it, in place of the nearest one")
	running := flag.Bool("live", false, "play trainings that are run, and not recorded, in place of TaskSet's")
	names := flag.String("tuners", "", "tuners, separated by commas")
	seeds := flag.Int("seeds", 10, "how many seeds, from 0 on")
	workers := flag.Int("workers", 8, "how many networks are trained at once")
	worth := flag.Int("worth", slices.Max(worths), "how many whole trainings' worth of epochs is played; 5, 10, 20 or 40")
	out := flag.String("out", "", "a file of results; runs that it has are not played again")
	change := flag.String("harder", "", "noise: each report has noise of 5% of the range; late: curves cross late")
	table := flag.Bool("report", false, "print tables of the results, and play nothing")
	against := flag.String("against", "", "with -report, the tuner that each other is compared with, on the tasks of -taskset, or on all")
	ends := flag.Bool("finals", false, "play the final losses, each task with the others as earlier studies")
	mode := flag.String("mode", "batch", "batch, async or sequential, with -finals")
	first := flag.Int("first", 0, "the first seed, with -finals")
	python := flag.String("python", "python3", "a Python for the tuners of peer.py and rival.py")
	bands := flag.Bool("calibration", false, "print how many trainings end in the 90% bands of the model, and play nothing")
	flag.Parse()
	if *out == "" && !*bands {
		return errors.New("-out is missing; want a file for the results")
	}
	if *table {
		return printTables(os.Stdout, *out, *folder, *against)
	}
	files, err := filepath.Glob(filepath.Join(*folder, "*.jsonl.gz"))
	if !*running && (err != nil || len(files) == 0) {
		return fmt.Errorf("-taskset %q has no tasks: want a folder of .jsonl.gz files", *folder)
	}
	if *bands {
		return calibrateAll(ctx, os.Stdout, files, *change, *seeds)
	}
	if *ends {
		return playFinals(ctx, files, *mode, *names, *python, *first, *seeds, *out)
	}
	done, err := lines.Played(*out, func(r *result) string { return fmt.Sprint(r.Tuner, " ", r.Task, " ", r.Seed) })
	if err != nil {
		return err
	}
	compared := slices.Index(worths, *worth) + 1
	if compared == 0 {
		return fmt.Errorf("-worth is %d; want one of %v", *worth, worths)
	}
	all := tuners(*workers)
	for _, name := range rivals {
		all[name] = func(w *world) (policy, error) { return newRival(w, name, *python) }
	}
	tasks := livePools()
	if !*running {
		if tasks, err = readTasks(files, *change, *between); err != nil {
			return err
		}
	}
	for seed := range *seeds {
		for _, task := range tasks {
			for name := range strings.SplitSeq(*names, ",") {
				if all[name] == nil {
					return fmt.Errorf("-tuners has %q; want some of %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
				}
				if done[fmt.Sprint(name, " ", task.name, " ", seed)] {
					continue
				}
				r, err := run(ctx, task, seed, *workers, worths[:compared], all[name])
				if err != nil {
					return fmt.Errorf("%s on %s with seed %d: %w", name, task.name, seed, err)
				}
				r.Tuner, r.Seed = name, seed
				if err := lines.Append(*out, r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readTasks reads tasks and makes them harder.
func readTasks(files []string, change string, between bool) (tasks []*pool, err error) {
	for _, file := range files {
		task, err := readTask(file)
		if err != nil {
			return nil, err
		}
		if err := harden(task, change); err != nil {
			return nil, err
		}
		if task.between = between; between {
			task.name += "+between"
		}
		tasks = append(tasks, task)
	}
	return tasks, nil
}

// printTables prints the tables of the results in a file: those that compare each tuner with one of them, if it is named.
func printTables(w io.Writer, path, folder, against string) error {
	if against != "" {
		return reportRivals(w, path, folder, against)
	}
	if err := report(w, path); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return reportTasks(w, path, float64(slices.Max(worths)))
}

func run(ctx context.Context, task *pool, seed, workers int, worths []int, of func(*world) (policy, error)) (r *result, err error) {
	w, err := newWorld(task, seed, worths)
	if err != nil {
		return nil, err
	}
	p, err := of(w)
	if err != nil {
		return nil, err
	}
	if c, ok := p.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	return w.play(ctx, workers, p)
}
