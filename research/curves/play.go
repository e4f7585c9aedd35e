package main

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// trial is a training that has begun.
type trial struct {
	number int // from 1
	*training
	x        []float64 // its place in the unit cube
	step     int
	running  bool
	expected float64 // where it ends, as it was judged last
	looks    []optimizer.Look
	ended    bool // nobody trains it further
}

// least returns the least loss so far, +Inf if there is none.
func (t *trial) least() float64 { return t.leastOf(t.losses[:t.step]) }

// job is what a worker does: it trains a trial up to a step.
type job struct {
	*trial
	until int
}

// policy decides what workers do.
type policy interface {
	// next returns what a worker does now, whose last trial is done, nil at its start; a nil trial
	// if there is nothing. It trains up to the step until.
	next(ctx context.Context, done *trial) (t *trial, until int, err error)
}

// world is a pool that is being played.
type world struct {
	*pool
	space    *space.Space
	encoding *optimizer.Encoding
	places   [][]float64 // of the trainings
	used     []bool
	trials   []*trial
	seed     uint64
	worths   []int // the numbers of whole trainings' worth of epochs at which runs are compared

	now   float64
	spent int // epochs of all trials
	least float64
}

// result is a line of the results.
type result struct {
	Tuner string `json:"tuner"`
	Task  string `json:"task"`
	Seed  int    `json:"seed"`
	// Regret is that of the best loss so far after each of the world's worths.
	Regret []float64 `json:"regret"`
	// Near is the number of trainings' worth of epochs after which the regret is at most asGood; 0 if it never is.
	Near   float64 `json:"near,omitempty"`
	Trials int     `json:"trials"`
	// Seconds are virtual.
	Seconds float64 `json:"seconds"`
}

// asGood is a regret that is as good as none.
const asGood = 0.01

func newWorld(p *pool, seed int, worths []int) (*world, error) {
	points, err := celspace.Of(&study.Study{Spec: study.Spec{
		Objective: study.Objective{Metric: "loss", Direction: study.Minimize}, Parameters: p.parameters,
	}})
	if err != nil {
		return nil, fmt.Errorf("make the space of %s: %w", p.name, err)
	}
	w := &world{
		pool: p, space: points, encoding: optimizer.NewEncoding(points), used: make([]bool, len(p.trainings)),
		seed: lines.Seed(p.name, seed), worths: worths, least: math.Inf(1),
	}
	for _, t := range p.trainings {
		w.places = append(w.places, w.encoding.Encode(t.point))
	}
	return w, nil
}

// begin begins the training at a place or, of recorded ones, the unused one that is nearest to it; nil if all are used.
func (w *world) begin(x []float64) *trial {
	switch {
	case w.live != nil:
		return w.beginLive(w.encoding.Decode(x))
	case w.between:
		return w.beginBetween(x)
	}
	nearest, least := -1, math.Inf(1)
	for i, place := range w.places {
		var d float64
		for c, v := range place {
			d += (v - x[c]) * (v - x[c])
		}
		if !w.used[i] && d < least {
			nearest, least = i, d
		}
	}
	if nearest < 0 {
		return nil
	}
	w.used[nearest] = true
	return w.add(&w.trainings[nearest], w.places[nearest])
}

// add adds the trial of a training that begins at a place.
func (w *world) add(t *training, x []float64) *trial {
	began := &trial{number: len(w.trials) + 1, training: t, x: x}
	w.trials = append(w.trials, began)
	return began
}

// beginLive begins a training that is not recorded.
func (w *world) beginLive(p study.Point) *trial {
	losses := make([]float64, w.epochs)
	t := &training{point: p, losses: losses, clean: losses, pace: w.live.Pace(p), live: w.live.New(p)}
	return w.add(t, w.encoding.Encode(p))
}

const (
	// amongst is how many recorded trainings one between them is the mean of.
	amongst = 5
	// hopeless is the loss of one that diverged, in a guess's.
	hopeless = 3
)

// beginBetween begins a training between recorded ones: the mean of the nearest, weighted by the inverse squares of their
// distances (Shepard 1968).
func (w *world) beginBetween(x []float64) *trial {
	distances := each.Of(w.places, func(place []float64) float64 { return floats.Distance(place, x, 2) })
	point, losses := w.encoding.Decode(x), make([]float64, w.epochs)
	t := &training{point: point, losses: losses, clean: losses}
	sum := 0.0
	for _, i := range loop.Lowest(distances, amongst) {
		recorded, weight := &w.trainings[i], 1/(distances[i]*distances[i]+1e-9)
		sum += weight
		t.pace += weight * recorded.pace
		t.final = recorded.final
		for step, loss := range recorded.clean {
			if math.IsNaN(loss) {
				loss = hopeless * w.guess
			}
			losses[step] += weight * loss
		}
	}
	t.pace /= sum
	floats.Scale(1/sum, losses)
	return w.add(t, w.encoding.Encode(point))
}

// play lets workers do what a policy says until they have spent what is compared last.
func (w *world) play(ctx context.Context, workers int, p policy) (*result, error) {
	r := &result{Task: w.name}
	var jobs session.Agenda[job]
	hire := func(done *trial) error {
		t, until, err := p.next(ctx, done)
		if err != nil || t == nil {
			return err
		}
		t.running = true
		jobs.Add(w.now+float64(until-t.step)*t.pace, t.number, job{t, until})
		return nil
	}
	for range workers {
		if err := hire(nil); err != nil {
			return nil, err
		}
	}
	for jobs.Len() > 0 && len(r.Regret) < len(w.worths) {
		var j job
		j, w.now = jobs.Next()
		for ; j.step < j.until; j.step++ {
			if j.live != nil {
				j.losses[j.step] = j.live.Epoch()
			}
			if v := j.clean[j.step]; !math.IsNaN(v) && j.valued(j.step) && v < w.least {
				w.least = v
				if w.regret(v) <= asGood && r.Near == 0 {
					r.Near = float64(w.spent+1) / float64(w.epochs)
				}
			}
			if w.spent++; w.spent == w.worths[len(r.Regret)]*w.epochs {
				r.Regret = append(r.Regret, w.regret(w.least))
				if len(r.Regret) == len(w.worths) {
					break
				}
			}
		}
		j.running = false
		if len(r.Regret) < len(w.worths) {
			if err := hire(j.trial); err != nil {
				return nil, err
			}
		}
	}
	for len(r.Regret) < len(w.worths) { // all trainings of the pool are used
		r.Regret = append(r.Regret, w.regret(w.least))
	}
	r.Trials, r.Seconds = len(w.trials), w.now
	return r, nil
}
