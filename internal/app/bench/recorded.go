package bench

import (
	"context"
	"errors"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Record is an evaluation of a study that has run.
type Record struct {
	Point   study.Point
	Outcome optimizer.Outcome
	// Value is the objective's, of a completed evaluation.
	Value float64
	// Seconds is how long the evaluation took; 0 if unknown.
	Seconds float64
}

// ErrNothingRecorded means that no evaluation of a study completed.
var ErrNothingRecorded = errors.New("no trial of the study has completed")

// NewRecorded returns an objective that gives each point the outcome of the nearest recorded
// one, the earliest of equally near ones. The distance is that of the unit cube in which the
// optimisers see the space. Evaluations take as long as the recorded ones; those whose
// duration is unknown take the mean of the others, or a second.
func NewRecorded(name string, s *space.Space, direction study.Direction, records []Record) (*Objective, error) {
	r := &recorded{encoding: optimizer.NewEncoding(s)}
	completed, sum, n := 0, 0.0, 0
	for _, one := range records {
		if one.Outcome == optimizer.OutcomeCompleted {
			completed++
		}
		if one.Seconds > 0 {
			sum += one.Seconds
			n++
		}
	}
	if completed == 0 {
		return nil, ErrNothingRecorded
	}
	mean := 1.0
	if n > 0 {
		mean = sum / float64(n)
	}
	for _, one := range records {
		if one.Seconds <= 0 {
			one.Seconds = mean
		}
		r.records = append(r.records, one)
		r.places = append(r.places, r.encoding.Encode(one.Point))
	}
	return &Objective{
		Name: name, Space: s, Direction: direction,
		// Failures are part of what is replayed, also at the beginning.
		Failing: float64(len(records)-completed) / float64(len(records)),
		open:    func() (evaluator, error) { return r, nil },
	}, nil
}

// recorded looks evaluations up. It is immutable.
type recorded struct {
	encoding *optimizer.Encoding
	records  []Record
	places   [][]float64
}

func (r *recorded) evaluate(_ context.Context, _ uint64, _ int, p study.Point) (outcome, error) {
	nearest := &r.records[r.nearest(r.encoding.Encode(p))]
	o := outcome{kind: nearest.Outcome, seconds: nearest.Seconds}
	if o.kind == optimizer.OutcomeCompleted {
		o.value, o.truth = nearest.Value, nearest.Value
	}
	return o, nil
}

// nearest returns the index of the record that is nearest to a place.
func (r *recorded) nearest(x []float64) int {
	best, least := 0, math.Inf(1)
	for i, place := range r.places {
		distance := 0.0
		for j, v := range place {
			distance += (v - x[j]) * (v - x[j])
		}
		if distance < least {
			best, least = i, distance
		}
	}
	return best
}

func (r *recorded) close(context.Context) error { return nil }

// Parallelism is what a study finds with a number of workers.
type Parallelism struct {
	Workers int
	// Best is the mean over the seeds of the best value after all trials, Error its
	// standard error, 0 for one seed; both are NaN if a run completed nothing.
	Best, Error float64
	// Seconds is the mean over the seeds of the virtual time until all trials had ended.
	Seconds float64
}

// Parallelisms plays an algorithm on a recorded objective in virtual time, with each number
// of workers and each seed, for as many trials. A free worker gets a suggestion at once.
func Parallelisms(ctx context.Context, newOptimizer func() (optimizer.Optimizer, error), objective *Objective, trials int, workers []int,
	seeds []uint64) ([]Parallelism, error) {
	var all []Parallelism
	for _, n := range workers {
		p := Parallelism{Workers: n, Best: math.NaN(), Error: math.NaN()}
		var bests []float64
		for _, seed := range seeds {
			o, err := newOptimizer()
			if err != nil {
				return nil, err
			}
			run, err := Play(ctx, Spec{Objective: objective.Name, Mode: Asynchronous, Durations: Measured, Workers: n, Trials: trials, Seed: seed},
				o, objective)
			if err != nil {
				return nil, err
			}
			bests = append(bests, objective.measure(newTrace(&run.Result, objective).after(trials)))
			p.Seconds += run.Result.Makespan / float64(len(seeds))
		}
		if e := estimate(bests); e != nil && e.N == len(seeds) {
			p.Best, p.Error = e.Mean, 0
			if e.SE != nil {
				p.Error = *e.SE
			}
		}
		all = append(all, p)
	}
	return all, nil
}
