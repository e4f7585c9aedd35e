package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// result reads the study from the ledger.
func (n *node) result(ctx context.Context, id string) (*display.Result, error) {
	if n.o.Ended != nil {
		n.o.Ended()
	}
	ctx, cancel := context.WithTimeout(ctx, resultTimeout)
	defer cancel()
	r, e, err := n.load(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.Recommended, err = recommend(ctx, e); err != nil {
		return r, err
	}
	if n.o.Curves == nil {
		return r, nil
	}
	r.Curves = map[int][]curve.Series{}
	for _, trial := range n.o.Curves(r) {
		c, err := n.ledger.Curve(ctx, id, trial)
		if err != nil {
			return r, err
		}
		if c != nil {
			r.Curves[trial] = c.Series()
		}
	}
	return r, nil
}

// recommend returns what the optimiser recommends of a study; nil if it makes no recommendations.
func recommend(ctx context.Context, e *engine.Engine) (*optimizer.Recommendation, error) {
	o, err := inject.NewOptimizer(e.Spec().Definition.Spec.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("recommend a point: %w", err)
	}
	recommended, err := optimizer.Recommend(ctx, o, e.FinalProblem(), e.Model().State)
	if err != nil {
		return nil, fmt.Errorf("recommend a point: %w", err)
	}
	return recommended, nil
}

// load reads the study without a recommendation.
func (n *node) load(ctx context.Context, id string) (*display.Result, *engine.Engine, error) {
	stored, err := n.ledger.LoadStudy(ctx, id)
	if err != nil {
		return nil, nil, n.damaged(fmt.Errorf("read the results: %w", err))
	}
	r, e, err := resultOf(stored)
	if err != nil {
		return nil, nil, n.damaged(err)
	}
	return r, e, nil
}

// resultOf returns what the records of a study hold, without a recommendation.
func resultOf(stored *ledger.Records) (*display.Result, *engine.Engine, error) {
	e, changed, err := engine.Load(stored.Study, stored.Status, stored.Model, stored.Trials, nil, engine.Settings{Space: celspace.Of},
		time.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("read the results: %w: %w", ledger.ErrCorrupt, err)
	}
	r := &display.Result{Study: stored.Study, Status: stored.Status}
	r.Trials = stored.Trials // the engine's copies would take as much memory again
	if len(changed.Trials) > 0 {
		r.Trials = slices.Clone(r.Trials)
	}
	byNumber := func(a, b record.Trial) int { return cmp.Compare(a.Number, b.Number) }
	if !slices.IsSortedFunc(r.Trials, byNumber) {
		r.Trials = slices.SortedFunc(slices.Values(r.Trials), byNumber)
	}
	for i := range changed.Trials { // the engine has checked that the numbers have no gap
		r.Trials[changed.Trials[i].Number-1] = changed.Trials[i]
	}
	if best, ok := e.Best(); ok {
		r.Best = &best
	}
	if len(stored.Study.Definition.Spec.Several) > 0 {
		r.Front, err = stored.Study.Front(r.Trials)
	}
	return r, e, err
}
