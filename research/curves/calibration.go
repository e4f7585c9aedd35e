package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

const (
	// ended and halfway are how many trials a model of the calibration knows to their end, and to a step before it.
	ended, halfway = 10, 30
	// ninety is how many standard deviations on each side have a probability of 90%.
	ninety = 1.6449
)

// parts are the bounds of the parts of a training of which the calibration is told apart: the last step that is
// known, as a share of all.
var parts = []float64{0.25, 0.5, 1}

// coverage counts ends in bands.
type coverage struct{ in, above, below int }

// calibrate draws trainings of a task, of which some are known to their end and others up to a step, and adds to
// each part how many of the others end in the 90% band that the model of curves has for them. As a band that is shown
// does, it ends at the best loss so far.
func calibrate(ctx context.Context, task *pool, seed int, list []coverage) error {
	rng := rand.New(rand.NewPCG(lines.Seed(task.name, seed), 3))
	s, err := celspace.New(task.parameters, nil, nil)
	if err != nil {
		return err
	}
	encoding, grid := optimizer.NewEncoding(s), curves.Grid(int64(task.epochs))
	var known []curves.Curve
	var rows []int
	for _, row := range rng.Perm(len(task.trainings))[:ended+halfway] {
		step := task.epochs
		if len(known) >= ended {
			step = int(grid[rng.IntN(len(grid)-1)])
		}
		c := curves.Curve{X: encoding.Encode(task.trainings[row].point)}
		for i, loss := range task.trainings[row].losses[:step] {
			c.Reports = append(c.Reports, curves.Report{Step: int64(i + 1), Cost: loss})
		}
		known, rows = append(known, c), append(rows, row)
	}
	model, err := curves.New(ctx, surrogate.Columns(encoding), known, int64(task.epochs), nil, true, rng)
	if err != nil {
		return fmt.Errorf("calibrate on %s with seed %d: %w", task.name, seed, err)
	}
	outlook := model.Outlook()
	for i := ended; i < len(known); i++ {
		losses, step := task.trainings[rows[i]].losses, len(known[i].Reports)
		now, end := leastOf(losses[:step]), leastOf(losses)
		if math.IsInf(now, 1) {
			continue // it has diverged
		}
		e := outlook.Curves([]int{i})[0]
		low, high := min(now, model.Cost(e.Mean-ninety*e.SD)), min(now, model.Cost(e.Mean+ninety*e.SD))
		part := slices.IndexFunc(parts, func(p float64) bool { return float64(step) <= p*float64(task.epochs) })
		switch {
		case end < low:
			list[part].below++
		case end > high:
			list[part].above++
		default:
			list[part].in++
		}
	}
	return nil
}

// leastOf returns the least of the losses; +Inf if there is none.
func leastOf(losses []float64) float64 {
	least := math.Inf(1)
	for _, v := range losses {
		if !math.IsNaN(v) {
			least = min(least, v)
		}
	}
	return least
}

// calibrateAll prints for each task, and for all of them, how many ends lie in their bands.
func calibrateAll(ctx context.Context, w io.Writer, files []string, change string, seeds int) error {
	fmt.Fprint(w, "| task | up to a quarter is known | up to half | more |\n| --- | ---: | ---: | ---: |\n")
	sum := make([]coverage, len(parts))
	for _, file := range files {
		task, err := readTask(file)
		if err != nil {
			return err
		}
		if err := harden(task, change); err != nil {
			return err
		}
		list := make([]coverage, len(parts))
		for seed := range seeds {
			if err := calibrate(ctx, task, seed, list); err != nil {
				return err
			}
		}
		calibrationRow(w, task.name, list)
		for i, c := range list {
			sum[i] = coverage{sum[i].in + c.in, sum[i].above + c.above, sum[i].below + c.below}
		}
	}
	calibrationRow(w, "all", sum)
	return nil
}

// calibrationRow prints how many ends of a task lie in their bands.
func calibrationRow(w io.Writer, task string, list []coverage) {
	fmt.Fprintf(w, "| %s |", task)
	for _, c := range list {
		n := max(1, c.in+c.above+c.below)
		share := func(k int) float64 { return 100 * float64(k) / float64(n) }
		fmt.Fprintf(w, " %.0f%% of %d, %.0f%% end lower, %.0f%% higher |", share(c.in), n, share(c.below), share(c.above))
	}
	fmt.Fprintln(w)
}
