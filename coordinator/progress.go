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
	// Slots is how many slots the study's pool has.
	Slots int
}

// Progress returns how far a study has come, from the leader's memory. The error is
// ErrNotLeader if this replica does not lead, and wraps ledger.ErrNotFound if there
// is no such study.
func (c *Coordinator) Progress(ctx context.Context, nameOrID string) (*Progress, error) {
	return query(ctx, c, func(ctx context.Context, l *leader, now time.Time) (*Progress, error) {
		r, err := l.studies.Find(nameOrID)
		if err != nil {
			return nil, err
		}
		e, err := l.studies.EngineOf(ctx, r, now)
		if err != nil {
			return nil, err
		}
		slots, _ := l.workers.Slots(r.Pool(), r.Avoided)
		p := &Progress{Study: r.Spec, Status: e.Status(), Running: e.Open(), Slots: slots}
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
