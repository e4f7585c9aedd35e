package view

import (
	"fmt"
	"math"
)

// Number is a value with the six digits that people look at.
func Number(v float64) string { return fmt.Sprintf("%.6g", v) }

// Expected is a model's mean and, unless it is too small to be seen beside the
// mean, its standard deviation.
func Expected(mean, sd float64) string {
	if sd <= math.Abs(mean)*1e-6 {
		return Number(mean)
	}
	return fmt.Sprintf("%s ± %.2g", Number(mean), sd)
}
