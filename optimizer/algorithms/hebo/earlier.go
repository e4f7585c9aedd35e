package hebo

import (
	"context"
	"fmt"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate/transfer"
)

// firstAmong is how many points of an even spread are tried for the best one to begin with.
const firstAmong = 512

// learn makes the options those of a study that knows the problem's earlier ones. Without a model of
// them it knows none.
func (o *proposer) learn(ctx context.Context, r *optimizer.Request, memory *memory) {
	if len(r.Earlier) == 0 || o.options.Paper {
		return
	}
	sources, fitted, err := transfer.Read(ctx, r.Problem, r.Encoding, memory.Earlier)
	if err != nil || sources == nil {
		return
	}
	o.options.Surrogate.Earlier = sources
	memory.rememberEarlier(fitted)
}

// propose is memory.Propose. In a study that knows earlier ones, every second point of the
// initial design, from the first on, is one that was good in them. The others are points of the Sobol
// sequence, since earlier studies may mislead.
func (o proposer) propose(
	ctx context.Context, r *optimizer.Request, memory *memory, due int,
	fill func(batch []optimizer.Suggestion) ([]optimizer.Suggestion, error),
) ([]optimizer.Suggestion, error) {
	if o.options.Surrogate.Earlier == nil {
		return memory.Propose(ctx, r, due, fill)
	}
	var batch []optimizer.Suggestion
	for len(batch) < due {
		if (r.First+len(batch))%2 == 1 {
			if s, found := o.first(ctx, r, batch); found {
				r.Sampler.MarkTaken(s.Point)
				batch = append(batch, s)
				continue
			}
		}
		next, err := memory.Points(ctx, r, batch, 1)
		for i := range next {
			next[i].Reasons.Pending = len(r.Pending) + len(batch)
		}
		if batch = append(batch, next...); err != nil || len(next) == 0 {
			return batch, err
		}
	}
	return memory.Complete(ctx, r, batch, fill)
}

// first returns the best point to begin with by what earlier studies found.
func (o proposer) first(ctx context.Context, r *optimizer.Request, batch []optimizer.Suggestion) (s optimizer.Suggestion, found bool) {
	sources := o.options.Surrogate.Earlier
	var places []loop.Place
	if r.Remaining != nil {
		for _, p := range r.Remaining {
			if !r.Sampler.Taken(p) {
				places = append(places, loop.Place{Point: p, X: r.Encoding.Encode(p)})
			}
		}
	} else {
		best := sources.Best()
		places = loop.Gather(nil, r, len(best), func(x []float64) { copy(x, best[0]); best = best[1:] }, r.Sampler.TakenAt)
		places = loop.Gather(places, r, len(places)+firstAmong, loop.SpreadOut(r.Encoding.Dim(), r.Rand), r.Sampler.TakenAt)
	}
	if len(places) == 0 {
		return s, false
	}
	var known []loop.Place
	for i := range r.Observations {
		known = append(known, loop.Place{X: r.Encoding.Encode(r.Observations[i].At())})
	}
	for _, p := range r.Pending {
		known = append(known, loop.Place{X: r.Encoding.Encode(p.Point)})
	}
	for _, b := range batch {
		known = append(known, loop.Place{X: r.Encoding.Encode(b.Point)})
	}
	var at *mat.Dense
	if len(known) > 0 {
		at = loop.Rows(known)
	}
	x := loop.Rows(places)
	var longer []float64
	if o.power(r) > 0 {
		longer = o.times.Longer(ctx, r.Encoding, r.Problem, x)
	}
	i, from := sources.First(x, at, longer)
	return optimizer.Suggestion{Point: places[i].Point, Source: optimizer.SourceDesign, Reasons: optimizer.Reasons{
		Pending: len(r.Pending) + len(batch),
		Note:    fmt.Sprintf("initial design: good in earlier studies (%s)", strings.Join(from, ", ")),
	}}, true
}
