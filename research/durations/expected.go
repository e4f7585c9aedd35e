package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/research/tabulated"
	"github.com/fantasia-hpo/fantasia/study"
)

// result is what was expected at a moment of a study, and what came of it.
type result struct {
	// Inside is the share of trials whose time lies in the interval that should hold nine tenths: of the trials that
	// the study began later, and of as many random points of the table. Running is that of the trials that ran.
	Inside, Random, Running float64
	// Error is the mean distance of the logarithms of the trials' times from the model's medians, and Mean that from
	// the mean time of the trials that had ended.
	Error, Mean float64
	// Left is how long the study still took, Model what the model expected of that, and Pace the estimate from the mean time
	// between two ends.
	Left, Model, Pace float64
}

// latest is how many of the trials that began last say what the next ones take, at least.
const latest = 16

// expected says what is expected of a study once so many of its trials have ended, and what came of it.
func expected(ctx context.Context, table *tabulated.Table, p *run, ended int) (*result, error) {
	now, seed := p.moment(ended), lines.Seed(p.Table, p.Seed)
	var known []duration.Observation
	var running, later []trial
	var sum, end float64
	n := 0
	for _, t := range p.Trials {
		end = max(end, t.End)
		switch o := (duration.Observation{Point: t.Point}); {
		case t.End <= now:
			o.Seconds = t.End - t.Start
			known, sum, n = append(known, o), sum+o.Seconds, n+1
		case t.Start <= now:
			o.Seconds, o.Censored = now-t.Start, true
			known, running = append(known, o), append(running, t)
		default:
			later = append(later, t)
		}
	}
	m, err := duration.Fit(ctx, table.Encoding, known, nil, seed)
	if err != nil {
		return nil, fmt.Errorf("after %d trials: %w", ended, err)
	}
	r := &result{Left: end - now, Pace: now / float64(n) * float64(len(p.Trials)-n)}
	plan := duration.Plan{Slots: p.Workers, New: len(later)}
	for i, e := range m.At(points(running)...) {
		ran := now - running[i].Start
		plan.Running = append(plan.Running, duration.Running{Estimate: e, Seconds: ran})
		r.Running += inside(e, ran, running[i].End-running[i].Start) / float64(len(running))
	}
	began := p.Trials[:len(p.Trials)-len(later)]
	plan.Next = m.At(points(began[len(began)-max(min(latest, len(began)), len(began)/2):])...)
	for i, e := range m.At(points(later)...) {
		took := later[i].End - later[i].Start
		r.Inside += inside(e, 0, took) / float64(len(later))
		r.Error += math.Abs(math.Log(took)-e.Mu) / float64(len(later))
		r.Mean += math.Abs(math.Log(took*float64(n)/sum)) / float64(len(later))
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	const drawn = 200
	for range drawn {
		row := table.Rows[rng.IntN(len(table.Rows))]
		r.Random += inside(m.At(row.Point)[0], 0, row.Seconds[rng.IntN(len(row.Seconds))]) / drawn
	}
	r.Model = plan.Left(seed)
	return r, nil
}

// moment returns when so many trials had ended.
func (p *run) moment(ended int) float64 {
	ends := each.Of(p.Trials, func(t trial) float64 { return t.End })
	slices.Sort(ends)
	return ends[ended-1]
}

func points(trials []trial) []study.Point {
	return each.Of(trials, func(t trial) study.Point { return t.Point })
}

// inside returns 1 if a time lies in the interval that should hold nine tenths of those that have run for a while, else 0.
func inside(e duration.Estimate, ran, took float64) float64 {
	if e.Quantile(0.05, ran) <= took && took <= e.Quantile(0.95, ran) {
		return 1
	}
	return 0
}
