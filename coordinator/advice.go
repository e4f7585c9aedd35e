package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// maxAdvised bounds how many studies' recommendations are kept.
const maxAdvised = 1000

// advice keeps each study's last recommendation until its ledger moves on. Safe
// for concurrent use.
type advice struct {
	// making holds one token: recommendations are made one after the other, and
	// each once, however many ask.
	making chan struct{}

	mu   sync.Mutex
	last map[string]advised
}

func newAdvice() *advice {
	return &advice{making: make(chan struct{}, 1), last: map[string]advised{}}
}

type advised struct {
	position int64
	given    *optimizer.Recommendation
}

func (a *advice) known(id string, position int64) (*optimizer.Recommendation, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.last[id]
	return known.given, ok && known.position == position
}

func (a *advice) keep(id string, position int64, given *optimizer.Recommendation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.last) >= maxAdvised {
		clear(a.last)
	}
	a.last[id] = advised{position, given}
}

// Recommend returns the evaluated point of a study whose posterior mean is best,
// nil while nothing has completed. Any replica answers, from the ledger.
func (c *Coordinator) Recommend(ctx context.Context, s ledger.Summary) (*optimizer.Recommendation, error) {
	if s.Status.Counts.Completed == 0 {
		return nil, nil
	}
	id, position := s.Study.ID, s.Status.Position
	if given, ok := c.advice.known(id, position); ok {
		return given, nil
	}
	select {
	case c.advice.making <- struct{}{}:
		defer func() { <-c.advice.making }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if given, ok := c.advice.known(id, position); ok { // made meanwhile
		return given, nil
	}
	given, err := c.recommend(ctx, id)
	if err != nil {
		return nil, err
	}
	c.advice.keep(id, position, given)
	return given, nil
}

// recommend makes a recommendation from a study's records.
func (c *Coordinator) recommend(ctx context.Context, id string) (*optimizer.Recommendation, error) {
	records, err := c.ledger.LoadStudy(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	e, _, err := engine.Load(records.Study, records.Status, records.Model, records.Trials, ids{}, c.o.Engine, time.Now())
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	given, err := c.advise(ctx, records.Study.Study.Spec.Algorithm, e.Problem())
	if err != nil {
		return nil, fmt.Errorf("recommend a point of study %s: %w", id, err)
	}
	return given, nil
}

// advise calls what makes recommendations; a panic there fails the request, not
// the process.
func (c *Coordinator) advise(ctx context.Context, a study.Algorithm, p *optimizer.Problem) (given *optimizer.Recommendation, err error) {
	defer caught(&err)
	return c.o.Recommend(ctx, a, p)
}
