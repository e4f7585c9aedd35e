package loop

import (
	"context"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/study"
)

// MinCompleted is the number of completed evaluations from which on a model beats an
// even spread of points.
const MinCompleted = 2

// Initial returns the number of trials of the initial design, wanted or, if that is 0,
// derived. A model of d lengthscales predicts little before d+1 points; if the budget is
// small, most of it should still go to the model.
func Initial(wanted int, r *optimizer.Request) int {
	if wanted > 0 {
		return wanted
	}
	return max(4, min(r.Encoding.Dim()+1, r.MaxTrials/4))
}

// Due returns how many points of the request belong to an initial design of the given
// number of trials, when that many evaluations have completed.
func Due(r *optimizer.Request, initial, completed int) int {
	due := min(r.N, max(0, initial-len(r.Observations)-len(r.Pending)))
	switch {
	case completed < MinCompleted || r.Encoding.Dim() == 0:
		return r.N
	case r.Remaining != nil:
		return min(due, len(r.Remaining))
	}
	return due
}

// Design is a study's position in its Sobol sequence, which is the initial design.
type Design struct {
	Cursor uint64 `json:"cursor,omitempty"`
}

// Propose answers a request: first with due points of the initial design, then with what fill
// adds to them. If that is all, or all that is left of the space, fill is not called. fill gets
// the points so far and returns them with those of a model. An error of it means that no model
// could be fitted; the Sobol sequence then completes what fill returned.
func (d *Design) Propose(
	ctx context.Context, r *optimizer.Request, due int, fill func(batch []optimizer.Suggestion) ([]optimizer.Suggestion, error),
) ([]optimizer.Suggestion, error) {
	batch, err := d.Points(ctx, r, nil, due)
	if err != nil || len(batch) < due {
		return batch, err
	}
	return d.Complete(ctx, r, batch, fill)
}

// Complete is Propose after the points of the initial design have been chosen.
func (d *Design) Complete(
	ctx context.Context, r *optimizer.Request, batch []optimizer.Suggestion,
	fill func(batch []optimizer.Suggestion) ([]optimizer.Suggestion, error),
) ([]optimizer.Suggestion, error) {
	if len(batch) == r.N {
		return batch, nil
	}
	batch, err := fill(batch)
	if err != nil {
		return d.WithoutModel(ctx, r, batch, err)
	}
	return batch, nil
}

// Points returns the next n points of the study's Sobol sequence, after those of batch.
// If a finite space has fewer left and may repeat points, known points make up the
// rest.
func (d *Design) Points(ctx context.Context, r *optimizer.Request, batch []optimizer.Suggestion, n int) ([]optimizer.Suggestion, error) {
	left := n
	if r.Remaining != nil && r.Repeats {
		left = min(n, len(r.Remaining)-len(batch))
	}
	points, err := d.sequence(ctx, r, left)
	if err != nil || len(points) < left || left == n {
		return points, err
	}
	return append(points, known(r, slices.Concat(batch, points), n-left)...), nil
}

// known returns n points that were observed, are pending or are in the batch, in turn.
func known(r *optimizer.Request, batch []optimizer.Suggestion, n int) []optimizer.Suggestion {
	var points []study.Point
	for _, o := range r.Observations {
		points = append(points, o.At())
	}
	for _, p := range r.Pending {
		points = append(points, p.Point)
	}
	for _, b := range batch {
		points = append(points, b.Point)
	}
	again := make([]optimizer.Suggestion, n)
	for i := range again {
		again[i] = optimizer.Suggestion{
			Point: points[(r.First+len(batch)+i)%len(points)], Repeat: true, Source: optimizer.SourceDesign,
			Reasons: optimizer.Reasons{
				Pending: len(r.Pending) + len(batch) + i,
				Note:    "evaluated again: no other point is left, and too few have completed for a model",
			},
		}
	}
	return again
}

// sequence returns the next n points of the study's Sobol sequence.
func (d *Design) sequence(ctx context.Context, r *optimizer.Request, n int) ([]optimizer.Suggestion, error) {
	if n == 0 {
		return nil, nil
	}
	sequence := sobol.NewSequence(r, d.Cursor)
	if b := NewPriors(r.Encoding); b != nil {
		sequence.Map = b.Draw
	}
	batch, err := sequence.Propose(ctx, r, n)
	d.Cursor = sequence.Next
	for i := range batch {
		batch[i].Reasons.Note = "initial design: " + batch[i].Reasons.Note
	}
	return batch, err
}

// WithoutModel completes a batch from the Sobol sequence when no model could be fitted
// to the observations.
func (d *Design) WithoutModel(
	ctx context.Context, r *optimizer.Request, batch []optimizer.Suggestion, why error,
) ([]optimizer.Suggestion, error) {
	// The remaining work takes no time.
	rest, err := d.Points(context.WithoutCancel(ctx), r, batch, r.N-len(batch))
	for i := range rest {
		rest[i].Source = optimizer.SourceFallback
		if rest[i].Repeat {
			continue
		}
		rest[i].Reasons.Pending += len(batch)
		rest[i].Reasons.Note = "next point of the scrambled Sobol sequence: no model could be fitted: " + why.Error()
	}
	return append(batch, rest...), err
}
