package pruner_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/study"
)

// oracle is testdata/oracle.json, which testdata/oracle.py made with Optuna and Syne
// Tune.
type oracle struct {
	Curves map[string][][]*float64 `json:"curves"`
	Played []played                `json:"played"`
}

// played is what a pruner of a peer stopped.
type played struct {
	Peer     string         `json:"peer"`
	Name     string         `json:"name"`
	Curves   string         `json:"curves"`
	Settings map[string]any `json:"settings"`
	Maximize bool           `json:"maximize"`
	Stopped  []stop         `json:"stopped"`
}

// stop is a trial and the step after which it was stopped.
type stop [2]int

func readOracle(t *testing.T) *oracle {
	t.Helper()
	text, err := os.ReadFile("testdata/oracle.json")
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{}
	if err := json.Unmarshal(text, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// numbers returns the curves with NaN for what is missing.
func numbers(curves [][]*float64) [][]float64 {
	all := make([][]float64, len(curves))
	for i, curve := range curves {
		for _, v := range curve {
			if v == nil {
				all[i] = append(all[i], math.NaN())
			} else {
				all[i] = append(all[i], *v)
			}
		}
	}
	return all
}

// play runs eight trials at a time, as oracle.py does, until report wants a trial
// stopped or its curve ends.
func play(curves [][]float64, report func(trial, step int, cost float64) bool, end func(trial int, completed bool)) (stopped []stop) {
	next, running := 0, [][2]int{}
	for {
		for ; len(running) < 8 && next < len(curves); next++ {
			running = append(running, [2]int{next, 0})
		}
		if len(running) == 0 {
			return stopped
		}
		left := running[:0]
		for _, place := range running {
			trial, step := place[0], place[1]+1
			switch {
			case report(trial, step, curves[trial][step-1]):
				stopped = append(stopped, stop{trial, step})
				end(trial, false)
			case step == len(curves[trial]):
				end(trial, true)
			default:
				left = append(left, [2]int{trial, step})
			}
		}
		running = left
	}
}

// isRung reports whether asha has a rung at a step.
func isRung(step int, settings map[string]any) bool {
	first, reduction := int(settings["minSteps"].(float64)), int(settings["reduction"].(float64))
	for ; first < step; first *= reduction {
	}
	return first == step
}

// All rules stop the same trials at the same steps as Optuna's, with an exception: a trial
// whose last value is NaN is judged by its earlier ones in Optuna, by the rules that look at several values.
func TestOptunaStopsTheSame(t *testing.T) {
	o := readOracle(t)
	seen := map[string]bool{}
	for _, p := range o.Played {
		if p.Peer != "optuna" {
			continue
		}
		seen[p.Name] = true
		t.Run(fmt.Sprintf("%s/%s/%v/maximize=%v", p.Name, p.Curves, p.Settings, p.Maximize), func(t *testing.T) {
			direction := study.Minimize
			if p.Maximize {
				direction = study.Maximize
			}
			settings := with()
			for name, value := range p.Settings {
				settings[name] = value
			}
			if p.Name == "asha" {
				settings["once"] = true
			}
			curves := numbers(o.Curves[p.Curves])
			rule := create(t, p.Name, settings, direction)
			sooner := slices.Contains([]string{"median", "percentile", "patient"}, p.Name)
			got := play(curves, func(trial, step int, cost float64) bool {
				v := rule.Report(trial, int64(step), cost)
				if sooner && math.IsNaN(cost) {
					return slices.Contains(p.Stopped, stop{trial, step})
				}
				return v.Stop
			}, func(trial int, completed bool) {
				final := curves[trial][len(curves[trial])-1]
				if p.Name == "wilcoxon" { // oracle.py tells Optuna the mean over the folds
					final = 0
					for _, v := range curves[trial] {
						final += v / float64(len(curves[trial]))
					}
				}
				// Optuna completes no trial whose value is not a number.
				rule.End(trial, completed && !math.IsNaN(final), final)
			})
			if !slices.Equal(got, p.Stopped) {
				t.Errorf("stopped %v,\nOptuna %v", got, p.Stopped)
			}
		})
	}
	others := slices.DeleteFunc(pruner.Names(), func(name string) bool { return name == pruner.Model }) // Optuna has none
	if len(seen) != len(others) {
		t.Errorf("compared %v, want all of %v", seen, others)
	}
}

// follow replays what a peer did and compares each of its decisions with another one.
func follow(p played, curves [][]float64, compare func(trial, step int, cost float64, theirs bool)) {
	play(curves, func(trial, step int, cost float64) bool {
		theirs := slices.Contains(p.Stopped, stop{trial, step})
		compare(trial, step, cost, theirs)
		return theirs
	}, func(int, bool) {})
}

// less counts the values below v.
func less(values []float64, v float64) (n int) {
	for _, other := range values {
		if other < v {
			n++
		}
	}
	return n
}

// Syne Tune's ASHA, adapted from Ray Tune's, lets a trial of n go on if at most n/3 are
// better. Optuna and asha take the best n/3, as in algorithm 2 of Li et al. 2020, so
// that they stop the one with exactly n/3 better ones. All other decisions are equal.
func TestSyneTuneASHA(t *testing.T) {
	o, differences, same := readOracle(t), 0, 0
	for _, p := range o.Played {
		if p.Peer != "syne-tune" || p.Name != "asha" {
			continue
		}
		rule, rungs := create(t, "asha", with("reduction", 3, "maxSteps", 27), study.Minimize), map[int][]float64{}
		follow(p, numbers(o.Curves[p.Curves]), func(trial, step int, cost float64, theirs bool) {
			ours := rule.Report(trial, int64(step), cost).Stop
			if !isRung(step, p.Settings) || step == 27 {
				return
			}
			rungs[step] = append(rungs[step], cost)
			n := len(rungs[step])
			switch better := less(rungs[step], cost); {
			case ours == theirs:
				same++
			case ours && better == n/3 && better > 0:
				differences++
			default:
				t.Errorf("trial %d at step %d, %d of %d are better: asha stops it: %v, Syne Tune: %v", trial, step, better, n, ours, theirs)
			}
		})
	}
	if same < 50 {
		t.Errorf("%d decisions are the same and %d are explained; want more", same, differences)
	}
}

// Syne Tune's median rule compares a trial with all that have reached its step, the
// trial itself among them, and not only with completed ones. Where the completed ones
// are all that have reached the step, it differs from median only for a trial that is
// just below the middle.
func TestSyneTuneMedian(t *testing.T) {
	o, same, stops := readOracle(t), 0, 0
	for _, p := range o.Played {
		if p.Peer != "syne-tune" || p.Name != "median" {
			continue
		}
		rules, reached := map[int]pruner.Pruner{}, map[int][]float64{}
		follow(p, numbers(o.Curves[p.Curves]), func(trial, step int, cost float64, theirs bool) {
			if rules[step] == nil {
				rules[step] = create(t, "median", with("minCompleted", 4), study.Minimize)
			}
			ours := rules[step].Report(trial, int64(step), cost).Stop
			rules[step].End(trial, true, cost)
			others := len(reached[step])
			better := less(reached[step], cost)
			reached[step] = append(reached[step], cost)
			switch {
			case step == 27: // the trial has ended anyway
			case ours == theirs:
				same++
				if ours {
					stops++
				}
			case others < 4 && theirs:
				t.Errorf("Syne Tune compares with %d others, want five with the trial itself", others)
			case ours && better == (others+1)/2:
			default:
				t.Errorf("trial %d at step %d, %d of %d others are better: median stops it: %v, Syne Tune: %v", trial, step, better, others, ours,
					theirs)
			}
		})
	}
	if same < 100 || stops < 20 {
		t.Errorf("%d decisions are the same, %d of them to stop; want more", same, stops)
	}
}
