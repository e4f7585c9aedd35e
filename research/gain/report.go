package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// negligible is added to gains before they are compared by their ratio, and thresholds are those of stopping, both as shares of the
// distance from the best to the median value.
const negligible = 0.001

var thresholds = []float64{0.01, 0.1}

// report prints a row for each part of the tasks and each moment.
func report(w io.Writer, all []forecast) {
	fmt.Fprint(w, "| tasks | after | forecasts | expected is off by a factor (median) | expected / gained (median) | gained at most `most` |")
	for _, level := range thresholds {
		fmt.Fprintf(w, " right, of those stopped at %g%% | stopped, of those where that is right |", 100*level)
	}
	fmt.Fprintln(w, "\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, part := range parts {
		for _, n := range append(slices.Clone(moments), 0) {
			var list []forecast
			for _, f := range all {
				if slices.Contains(part.tasks, f.Task) && (n == 0 || f.After == n) {
					list = append(list, f)
				}
			}
			if len(list) > 0 {
				fmt.Fprintf(w, "| %s | %s |%s\n", part.name, map[bool]string{true: "all", false: fmt.Sprint(n)}[n == 0], cells(list))
			}
		}
	}
}

// cells formats what came of forecasts.
func cells(list []forecast) string {
	var ratios, off []float64
	within := 0
	for _, f := range list {
		ratio := math.Log((f.Expected + negligible) / (max(0, f.Gained) + negligible))
		ratios, off = append(ratios, ratio), append(off, math.Abs(ratio))
		if f.Gained <= f.Most+1e-9 {
			within++
		}
	}
	text := fmt.Sprintf(" %d | %.2f | %.2f | %.0f%% |", len(list), math.Exp(median(off)), math.Exp(median(ratios)),
		100*float64(within)/float64(len(list)))
	for _, level := range thresholds {
		stops, right, little := 0, 0, 0
		for _, f := range list {
			stop, small := f.Most <= level, f.Gained <= level
			stops, little = stops+count(stop), little+count(small)
			right += count(stop && small)
		}
		text += fmt.Sprintf(" %d of %d | %d of %d |", right, stops, right, little)
	}
	return text
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
