package bench

import (
	"math"
	"slices"
	"sort"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// trace is the course of a run: for each observation, when it was told, and the loss at
// the point with the best told value so far, NaN while there is none. With noise this
// loss can rise again: the best value seen is the luckiest.
type trace struct {
	told, loss []float64
}

func newTrace(r *Result, o *Objective) trace {
	t := trace{told: make([]float64, len(r.Evaluations)), loss: make([]float64, len(r.Evaluations))}
	best := -1
	for i, e := range r.Evaluations {
		if e.Outcome == optimizer.OutcomeCompleted && (best < 0 || o.Direction.Better(e.Value, r.Evaluations[best].Value)) {
			best = i
		}
		t.told[i], t.loss[i] = e.Told, math.NaN()
		if best >= 0 {
			t.loss[i] = r.Evaluations[best].Loss
		}
	}
	return t
}

// after returns the loss after n observations, or after all if there are fewer; NaN if
// nothing has completed.
func (t trace) after(n int) float64 {
	if n = min(n, len(t.loss)); n == 0 {
		return math.NaN()
	}
	return t.loss[n-1]
}

// by returns the loss at a time.
func (t trace) by(time float64) float64 {
	return t.after(sort.Search(len(t.told), func(i int) bool { return t.told[i] > time }))
}

// reaches returns when the loss was first at most the target, up to a time; ok is false
// if it never was.
func (t trace) reaches(target, until float64) (at float64, ok bool) {
	for i, loss := range t.loss {
		if t.told[i] > until {
			break
		}
		if loss <= target {
			return t.told[i], true
		}
	}
	return 0, false
}

// speedup returns how many times faster an asynchronous run reached the loss that the
// synchronous one had after checkpoint observations, 0 if it had not by the synchronous
// run's end. Reached compares the times at which each run first had that loss; a run
// compared with itself has 1. Passed counts the synchronous run's time until it had all
// those observations.
func speedup(synchronous, asynchronous trace, checkpoint int) (reached, passed float64, ok bool) {
	target := synchronous.after(checkpoint)
	if math.IsNaN(target) {
		return 0, 0, false
	}
	end := synchronous.told[len(synchronous.told)-1]
	at, faster := asynchronous.reaches(target, end)
	if !faster {
		return 0, 0, true
	}
	first, _ := synchronous.reaches(target, end)
	if at == 0 { // durations of 0
		return 1, 1, true
	}
	return first / at, synchronous.told[min(checkpoint, len(synchronous.told))-1] / at, true
}

// Estimate is a mean with its standard error and the quartiles.
type Estimate struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	// SE is nil for fewer than two values.
	SE     *float64 `json:"se"`
	Low    float64  `json:"q25"`
	Median float64  `json:"median"`
	High   float64  `json:"q75"`
}

// estimate summarises values without NaN; nil if none is left.
func estimate(values []float64) *Estimate {
	kept := sorted(slices.DeleteFunc(slices.Clone(values), math.IsNaN))
	if len(kept) == 0 {
		return nil
	}
	e := &Estimate{N: len(kept), Low: quantile(kept, 0.25), Median: quantile(kept, 0.5), High: quantile(kept, 0.75)}
	n := float64(e.N)
	for _, v := range kept {
		e.Mean += v / n
	}
	if e.N > 1 {
		sum := 0.0
		for _, v := range kept {
			sum += (v - e.Mean) * (v - e.Mean)
		}
		e.SE = new(math.Sqrt(sum / (n - 1) / n))
	}
	return e
}

// sorted returns the values in ascending order.
func sorted(values []float64) []float64 { return slices.Sorted(slices.Values(values)) }

// quantile interpolates between the order statistics (Hyndman and Fan's type 7).
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
