package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// run is one study of the leader. The engine and the optimiser of a study that
// has ended are loaded when somebody asks for them.
type run struct {
	spec      record.Study
	status    record.Status
	engine    *engine.Engine
	optimizer optimizer.Optimizer
	// wake is when the engine wants its next tick; zero where it wants none.
	wake time.Time
	// fleet is the generation of the fleet that the engine was last told of.
	fleet int64
}

func (r *run) name() string { return r.spec.Study.Metadata.Name }
func (r *run) pool() string { return r.spec.Study.Spec.Pool }

func (r *run) running() bool { return r.engine != nil && r.status.State == study.Running }

func (r *run) due(now time.Time) bool { return !r.wake.IsZero() && !r.wake.After(now) }

// engineOf returns the study's engine, loaded where it is not.
func (l *leader) engineOf(ctx context.Context, r *run, now time.Time) (*engine.Engine, error) {
	if r.engine != nil {
		return r.engine, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, err := l.c.ledger.LoadStudy(ctx, r.spec.ID)
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", r.name(), err)
	}
	if err := l.load(r, stored, now); err != nil {
		return nil, err
	}
	return r.engine, nil
}

// prepare makes the optimiser of a study.
func (r *run) prepare(c *Coordinator) (err error) {
	r.optimizer, err = c.o.NewOptimizer(r.spec.Study.Spec.Algorithm)
	if err != nil {
		return fmt.Errorf("make the optimiser of study %s: %w", r.name(), err)
	}
	return nil
}
