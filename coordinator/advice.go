package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// advice keeps each study's last recommendation until its ledger moves on. Safe
// for concurrent use.
type advice struct {
	mu   sync.Mutex
	last map[string]advised
}

type advised struct {
	position int64
	given    *optimizer.Recommendation
}

// Recommend returns the evaluated point of a study whose posterior mean is best,
// nil while nothing has completed. Any replica answers, from the ledger.
func (c *Coordinator) Recommend(ctx context.Context, s ledger.Summary) (*optimizer.Recommendation, error) {
	if s.Status.Counts.Completed == 0 {
		return nil, nil
	}
	id, position := s.Study.ID, s.Status.Position
	c.advice.mu.Lock()
	known, ok := c.advice.last[id]
	c.advice.mu.Unlock()
	if ok && known.position == position {
		return known.given, nil
	}
	records, err := c.ledger.LoadStudy(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	e, _, err := engine.Load(records.Study, records.Status, records.Model, records.Trials, ids{}, c.o.Engine, time.Now())
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	given, err := c.o.Recommend(ctx, e.Problem())
	if err != nil {
		return nil, fmt.Errorf("recommend a point of study %s: %w", id, err)
	}
	c.advice.mu.Lock()
	defer c.advice.mu.Unlock()
	if c.advice.last == nil || len(c.advice.last) > 1000 {
		c.advice.last = map[string]advised{}
	}
	c.advice.last[id] = advised{position, given}
	return given, nil
}
