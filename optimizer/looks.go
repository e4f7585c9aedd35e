package optimizer

import (
	"math"

	"github.com/fantasia-hpo/fantasia/study"
)

// Curve is what a trial has reported, at some of its steps.
type Curve struct {
	Trial int
	Looks []Look
}

// Look is the least cost that a trial has reported up to a step. Lower is better, whatever the objective's direction is.
type Look struct {
	Step int64   `json:"step"`
	Cost float64 `json:"cost"`
}

// lookFactor is how much later the next look at a curve is than the one before: a curve changes about as much from one step to twice as
// many as from there to four times as many.
const lookFactor = 1.2

// Looked returns the looks at a curve with one at a step, whose cost is the least up to it, if that is due: a curve has at most 240.
// The looks that there are stay as they are. A cost that is not finite is none.
func Looked(looks []Look, step int64, least float64) []Look {
	if !study.Finite(least) || step < 0 || len(looks) > 0 && span(step) <= span(looks[len(looks)-1].Step) {
		return looks
	}
	return append(looks[:len(looks):len(looks)], Look{step, least})
}

// span is the number of the span of steps that a step is in.
func span(step int64) int {
	if step < 1 {
		return -1
	}
	return int(math.Floor(math.Log(float64(step))/math.Log(lookFactor) + 1e-9))
}
