package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Number is a value with the six digits that people look at.
func Number(v float64) string { return fmt.Sprintf("%.6g", v) }

// Short is a value with a few significant digits, and as a decimal number where that has at most nine
// places: 1670, not 1.67e+03.
func Short(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'g', digits, 64)
	rounded, err := strconv.ParseFloat(text, 64)
	if size := math.Abs(rounded); err != nil || size != 0 && size < 1e-4 || size >= 1e9 || math.IsNaN(v) {
		return text
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Value is a parameter's value as people see it.
func Value(v any) string {
	if f, ok := v.(float64); ok {
		return Number(f)
	}
	return study.Format(v)
}

// Recommended describes a recommendation in a few words: the trial with its expected value or, if there
// are several objectives, with the number of trials on the recommended front.
func Recommended(trial int, mean, sd float64, front []optimizer.Expected) string {
	if front == nil {
		return fmt.Sprintf("trial %d (%s)", trial, Expected(mean, sd))
	}
	return fmt.Sprintf("trial %d, of %d on the front of the models", trial, len(front))
}

// ExpectedFront describes the first trials of a recommended front, one a line, with the expected value
// of each metric. A last line says how many more there are.
func ExpectedFront(metrics []string, front []optimizer.Expected, most int) []string {
	var lines []string
	for _, e := range front[:min(len(front), most)] {
		line := fmt.Sprintf("trial %d: ", e.Trial)
		if e.Knee {
			line = fmt.Sprintf("trial %d (knee): ", e.Trial)
		}
		lines = append(lines, line+expectedOf(metrics, e))
	}
	if more := len(front) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// expectedOf describes the expected value of each metric of a trial.
func expectedOf(metrics []string, e optimizer.Expected) string {
	list := make([]string, min(len(metrics), len(e.Means), len(e.SDs)))
	for k := range list {
		list[k] = metrics[k] + " = " + Expected(e.Means[k], e.SDs[k])
	}
	return strings.Join(list, ", ")
}

// Expected is a model's mean and, unless it is too small to be seen beside the
// mean, its standard deviation.
func Expected(mean, sd float64) string {
	if sd <= math.Abs(mean)*1e-6 {
		return Number(mean)
	}
	return Number(mean) + " ± " + Short(sd, 2)
}

// Share returns how many trials have ended, of all; 0 stands for a study that only time bounds.
func Share(ended, all int) string {
	if all == 0 {
		return strconv.Itoa(ended)
	}
	return fmt.Sprintf("%d/%d", ended, all)
}
