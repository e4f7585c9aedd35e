package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Recommend returns the evaluated point of a study whose posterior mean is best. It
// returns nil if no trial has completed yet, or if the study's optimiser makes no
// recommendations. It reads the ledger, so any replica can call it. It loads the whole study and fits a model, so
// what was recommended at a position of the study is kept, and recommendations are made one at a time.
func (c *Coordinator) Recommend(ctx context.Context, s ledger.Summary) (*optimizer.Recommendation, error) {
	if s.Status.Counts.Completed == 0 {
		return nil, nil
	}
	o, err := c.o.NewOptimizer(s.Study.Definition.Spec.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("recommend a point of study %s: %w", s.Study.ID, err)
	}
	if _, ok := o.(optimizer.Recommender); !ok {
		return nil, nil
	}
	return c.recommendations.At(ctx, s.Study.ID, s.Status.Position, func() (*optimizer.Recommendation, error) {
		return c.recommendStored(ctx, s.Study.ID)
	})
}

// recommendStored makes a recommendation from a study's records; nil if its optimiser makes none. The engine that it
// loads only says what the optimiser is to be told: it gets no event, and is dropped.
func (c *Coordinator) recommendStored(ctx context.Context, id string) (*optimizer.Recommendation, error) {
	records, err := c.ledger.LoadStudy(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	o, err := c.o.NewOptimizer(records.Study.Definition.Spec.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("recommend a point of study %s: %w", id, err)
	}
	model, ok := o.(optimizer.Recommender)
	if !ok {
		return nil, nil
	}
	e, _, err := engine.Load(records.Study, records.Status, records.Model, records.Trials, drive.IDs{}, c.o.Engine, time.Now())
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	recommended, err := drive.Recommend(ctx, model, e.FinalProblem(), e.Model().State)
	if err != nil {
		return nil, fmt.Errorf("recommend a point of study %s: %w", id, err)
	}
	return recommended, nil
}
