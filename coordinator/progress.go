package coordinator

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// Progress holds how far a study has come.
type Progress struct {
	Study  record.Study
	Status record.Status
	// Best is the completed trial with the best value; nil if there is none.
	Best *record.Trial
	// Running are the attempts that workers have claimed, by trial.
	Running []engine.OpenAttempt
	// LastFailed is the failed trial that ended last; nil if there is none.
	LastFailed *record.Trial
}

// Progress returns how far a study has come, from the leader's memory. The error is
// ErrNotLeader if this replica does not lead, and wraps ledger.ErrNotFound if there
// is no such study. It waits for the round's commit like a change, so all that it returns is durable.
func (c *Coordinator) Progress(ctx context.Context, nameOrID string) (*Progress, error) {
	return query(ctx, c, func(ctx context.Context, l *leader, now time.Time) (*Progress, error) {
		r, err := l.whole(ctx, nameOrID, now)
		if err != nil {
			return nil, err
		}
		e := r.Engine
		p := &Progress{Study: r.Spec, Status: e.Status(), Running: e.Open()}
		if best, ok := e.Best(); ok {
			p.Best = &best
		}
		if failed, ok := e.LastFailed(); ok {
			p.LastFailed = &failed
		}
		return p, nil
	})
}

// Broken returns why this replica, if it leads, cannot load the study with an id; nil if it can. The
// error wraps studies.ErrBroken.
func (c *Coordinator) Broken(id string) error {
	l := c.term.Load()
	if l == nil {
		return nil
	}
	return l.studies.WhyBroken(id)
}
