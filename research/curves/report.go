package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/research/lines"
)

// resamples of the bootstrap that makes an interval.
const resamples = 4000

// reportTasks writes a table with a row for each task and tuner. It says how many runs came near the best loss, and after how many
// trainings' worth of epochs, as a geometric mean; a run that never did counts with all that was played. The last column compares
// this with the same optimiser without stopping, over runs of the same seed: how many times as fast it is, with an interval that
// holds 95% of the bootstrap's means.
func reportTasks(w io.Writer, path string, most float64) error {
	all, err := lines.Read[result](path)
	if err != nil {
		return err
	}
	tasks := map[string]map[string]map[string][]float64{} // by task, tuner and seed
	for _, r := range all {
		for _, task := range []string{r.Task, "all"} {
			if tasks[task] == nil {
				tasks[task] = map[string]map[string][]float64{}
			}
			if tasks[task][r.Tuner] == nil {
				tasks[task][r.Tuner] = map[string][]float64{}
			}
			tasks[task][r.Tuner][r.key()] = r.nearness(most)
		}
	}
	fmt.Fprint(w, "| task | tuner | runs | near the best | after | times as fast as without stopping |\n"+
		"| --- | --- | --- | --- | --- | --- |\n")
	for _, task := range slices.Sorted(maps.Keys(tasks)) {
		for _, tuner := range slices.Sorted(maps.Keys(tasks[task])) {
			runs := tasks[task][tuner]
			fmt.Fprintf(w, "| %s | `%s` | %d | %.0f | %.1f |", task, tuner, len(runs), mean(runs, 1)*float64(len(runs)), math.Exp(mean(runs, 0)))
			if algorithm, _, stops := strings.Cut(tuner, "+"); stops {
				fmt.Fprintf(w, " %s", faster(tasks[task][algorithm], runs))
			}
			fmt.Fprintln(w, " |")
		}
	}
	return nil
}

// key names a run among those of a tuner.
func (r *result) key() string { return fmt.Sprint(r.Task, " ", r.Seed) }

// nearness returns the logarithm of the number of trainings' worth of epochs after which a run came near the best loss, and 1; that of
// the most that counts, and 0, if it did not by then.
func (r *result) nearness(most float64) []float64 {
	if r.Near > 0 && r.Near <= most {
		return []float64{math.Log(r.Near), 1}
	}
	return []float64{math.Log(most), 0}
}

// runs are those of a tuner, by their keys. All have played as much.
type runs map[string]*result

// compared is at how many of the worths they are compared.
func (r runs) compared() int {
	n := len(worths)
	for _, one := range r {
		n = min(n, len(one.Regret))
	}
	return n
}

// nearness is that of each run, if no more than a number of the worths count.
func (r runs) nearness(compared int) map[string][]float64 {
	all := map[string][]float64{}
	for key, one := range r {
		all[key] = one.nearness(float64(worths[compared-1]))
	}
	return all
}

func (r runs) regrets() map[string][]float64 {
	all := map[string][]float64{}
	for key, one := range r {
		all[key] = one.Regret
	}
	return all
}

// reportRivals writes a table that compares a tuner with each other, over runs of the same task and seed: how many times as fast it
// comes near the best loss, and how much less regret it leaves, with intervals that hold 95% of the bootstrap's means. Times are those of
// reportTasks; if a tuner has played less, they count up to there for both. The slowest tuner is last. Only tasks of a folder count, or
// all if it is empty.
func reportRivals(w io.Writer, path, folder, mine string) error {
	all, err := lines.Read[result](path)
	if err != nil {
		return err
	}
	tuners := map[string]runs{}
	for i, r := range all {
		if _, err := os.Stat(filepath.Join(folder, r.Task+".jsonl.gz")); folder != "" && err != nil {
			continue
		}
		if tuners[r.Tuner] == nil {
			tuners[r.Tuner] = runs{}
		}
		tuners[r.Tuner][r.key()] = &all[i]
	}
	ours := tuners[mine]
	if ours == nil {
		return fmt.Errorf("-against is %q, which has no runs in %s; want one of %s", mine, path,
			strings.Join(slices.Sorted(maps.Keys(tuners)), ", "))
	}
	slowdown := func(tuner string) float64 {
		theirs := tuners[tuner]
		m, _, _, _ := less(theirs.nearness(theirs.compared()), ours.nearness(theirs.compared()), 0)
		return m
	}
	order := slices.SortedFunc(maps.Keys(tuners), func(a, b string) int {
		return cmp.Or(cmp.Compare(slowdown(a), slowdown(b)), cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "| tuner | runs | 5 | 10 | 20 | 40 | near the best | after | `%s` is as fast | less regret with it, 5 | 10 | 20 | 40 |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", mine)
	for _, tuner := range order {
		theirs := tuners[tuner]
		n := theirs.compared()
		near, regrets := theirs.nearness(n), theirs.regrets()
		fmt.Fprintf(w, "| `%s` | %d |", tuner, len(theirs))
		for i := range n {
			fmt.Fprintf(w, " %.2f |", mean(regrets, i))
		}
		fmt.Fprint(w, strings.Repeat(" |", len(worths)-n))
		fmt.Fprintf(w, " %.0f | %.1f |", mean(near, 1)*float64(len(theirs)), math.Exp(mean(near, 0)))
		if tuner == mine {
			fmt.Fprintln(w, strings.Repeat(" |", 1+len(worths)))
			continue
		}
		fmt.Fprintf(w, " %s |", faster(near, ours.nearness(n)))
		for i := range n {
			fmt.Fprintf(w, " %s |", gain(regrets, ours.regrets(), i))
		}
		fmt.Fprintln(w, strings.Repeat(" |", len(worths)-n))
	}
	return nil
}

// report writes a table of the results: each tuner's mean regret after each of the worths, and in the second
// half how much less it is than that of the same optimiser without stopping, over the runs of the same task
// and seed, with an interval that holds 95% of the bootstrap's means.
func report(w io.Writer, path string) error {
	all, err := lines.Read[result](path)
	if err != nil {
		return err
	}
	runs := map[string]map[string][]float64{}
	for _, r := range all {
		if len(r.Regret) < len(worths) {
			return fmt.Errorf("%s: runs of %s end before %d trainings' worth; want -against with a tuner to compare them", path, r.Tuner,
				slices.Max(worths))
		}
		if runs[r.Tuner] == nil {
			runs[r.Tuner] = map[string][]float64{}
		}
		runs[r.Tuner][r.key()] = r.Regret
	}
	order := slices.SortedFunc(maps.Keys(runs), func(a, b string) int {
		x, _, _ := strings.Cut(a, "+")
		y, _, _ := strings.Cut(b, "+")
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(mean(runs[a], 2), mean(runs[b], 2)))
	})
	fmt.Fprint(w, "| tuner | runs | 5 | 10 | 20 | 40 | less than without stopping, 5 | 10 | 20 | 40 |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, tuner := range order {
		fmt.Fprintf(w, "| `%s` | %d |", tuner, len(runs[tuner]))
		for i := range 4 {
			fmt.Fprintf(w, " %.2f |", mean(runs[tuner], i))
		}
		algorithm, rule, stops := strings.Cut(tuner, "+")
		for i := range 4 {
			if !stops || rule == "" || runs[algorithm] == nil {
				fmt.Fprint(w, "  |")
				continue
			}
			fmt.Fprintf(w, " %s |", gain(runs[algorithm], runs[tuner], i))
		}
		fmt.Fprintln(w)
	}
	return nil
}

func mean(runs map[string][]float64, i int) (sum float64) {
	for _, key := range slices.Sorted(maps.Keys(runs)) {
		sum += runs[key][i]
	}
	return sum / float64(len(runs))
}

// gain compares the runs that a and b both have. It returns how much less the regret of b is, as a mean with its
// interval.
func gain(a, b map[string][]float64, i int) string {
	m, low, high, ok := less(a, b, i)
	if !ok {
		return "too few runs"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", m, low, high)
}

// faster is gain for logarithms of times: how many times as fast b is.
func faster(a, b map[string][]float64) string {
	m, low, high, ok := less(a, b, 0)
	if !ok {
		return "too few runs"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", math.Exp(m), math.Exp(low), math.Exp(high))
}

// less returns the mean difference of the runs that a and b both have, a less b, with its interval. ok is false if these are
// fewer than five.
func less(a, b map[string][]float64, i int) (m, low, high float64, ok bool) {
	var each []float64
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if a[key] != nil {
			each = append(each, a[key][i]-b[key][i])
		}
	}
	if len(each) < 5 {
		return 0, 0, 0, false
	}
	rng := rand.New(rand.NewPCG(1, 0))
	means := make([]float64, resamples)
	for k := range means {
		for range each {
			means[k] += each[rng.IntN(len(each))] / float64(len(each))
		}
	}
	slices.Sort(means)
	return stat.Mean(each, nil), stat.Quantile(0.025, stat.Empirical, means, nil), stat.Quantile(0.975, stat.Empirical, means, nil), true
}
