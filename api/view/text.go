package view

import (
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/study"
)

// Number is a value with the six digits that people look at.
func Number(v float64) string { return fmt.Sprintf("%.6g", v) }

// Value is a parameter's value as people see it.
func Value(v any) string {
	if f, ok := v.(float64); ok {
		return Number(f)
	}
	return study.Format(v)
}

// Expected is a model's mean and, unless it is too small to be seen beside the
// mean, its standard deviation.
func Expected(mean, sd float64) string {
	if sd <= math.Abs(mean)*1e-6 {
		return Number(mean)
	}
	return fmt.Sprintf("%s ± %.2g", Number(mean), sd)
}
