package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Durations is the source of the durations of evaluations.
type Durations string

// The kinds of durations.
const (
	// Drawn durations come from the law, independent of the point.
	Drawn Durations = "drawn"
	// ByPoint multiplies the law's durations by a factor from 1/4 to 7/4, which grows
	// with the first parameter across its range; its mean over the space is 1.
	ByPoint Durations = "by-point"
	// Measured durations are those of the actual evaluations.
	Measured Durations = "measured"
)

// ParseDurations parses the name of a kind of durations.
func ParseDurations(text string) (Durations, error) {
	kinds := []Durations{Drawn, ByPoint, Measured}
	if d := Durations(text); slices.Contains(kinds, d) {
		return d, nil
	}
	return "", fmt.Errorf("unknown durations %q; want one of %v", text, strings.Trim(fmt.Sprint(kinds), "[]"))
}

// pointFactor returns the factor of ByPoint. The order of the columns is the space's
// order of parameters.
func pointFactor(e *optimizer.Encoding, p study.Point) float64 {
	if e.Dim() == 0 {
		return 1
	}
	return 0.25 + 1.5*e.Encode(p)[0]
}

// Charge is the virtual time that a request for suggestions takes.
type Charge struct {
	// Fixed is the cost of each request, in the unit of virtual time.
	Fixed float64 `json:"fixed,omitempty"`
	// Measured charges the seconds that the optimiser took; Unit is the number of
	// seconds in a unit of virtual time.
	Measured bool    `json:"measured,omitempty"`
	Unit     float64 `json:"unit,omitempty"`
}

// ParseCharge parses a cost of suggestions: "measured", or a number of units of virtual
// time. The unit is the assumed mean duration of an evaluation.
func ParseCharge(text string, unit time.Duration) (Charge, error) {
	if text == "measured" {
		if unit <= 0 {
			return Charge{}, fmt.Errorf("charge measured needs the duration of an evaluation; %v is not positive", unit)
		}
		return Charge{Measured: true, Unit: unit.Seconds()}, nil
	}
	fixed, err := strconv.ParseFloat(text, 64)
	if err != nil || !(fixed >= 0 && fixed <= 1e6) {
		return Charge{}, fmt.Errorf("charge %q is not accepted; want measured, or a number from 0 to 1e6, in mean durations of an evaluation",
			text)
	}
	return Charge{Fixed: fixed}, nil
}

// cost returns the cost of a request that took the given time.
func (c Charge) cost(took time.Duration) float64 {
	if c.Measured {
		return took.Seconds() / c.Unit
	}
	return c.Fixed
}
