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
	var p *Progress
	err := c.command(ctx, func(ctx context.Context, l *leader, now time.Time) error {
		r, err := l.studies.find(nameOrID)
		if err != nil {
			return err
		}
		e, err := l.studies.engineOf(ctx, r, now)
		if err != nil {
			return err
		}
		slots, _ := l.watch.fleet.capacity(r)
		p = &Progress{Study: r.spec, Status: e.Status(), Running: e.Open(), Slots: slots}
		if best, ok := e.Best(); ok {
			p.Best = &best
		}
		if failed, ok := e.LastFailed(); ok {
			p.LastFailed = &failed
		}
		return nil
	})
	if err != nil { // if ctx has ended, the loop may still write the rest
		return nil, err
	}
	return p, nil
}
