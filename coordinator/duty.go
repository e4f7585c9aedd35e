package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Duty is a background task that the leader runs, such as starting the studies that
// Kubernetes holds.
type Duty struct {
	// Name identifies the duty in logs.
	Name string
	// Run works until ctx ends, when the term does. If it returns earlier, it is
	// called again after a pause: its failure never ends a term. The next term, of this
	// replica or of another, begins it anew, so what it has done MUST be safe to do twice.
	Run func(ctx context.Context, c *Coordinator) error
}

// dutyAgain is how long a duty that has ended early waits before it is called again.
const dutyAgain = time.Second

// fulfil runs a duty until the term ends. It waits until commands are accepted, since duties work by them.
func (l *leader) fulfil(ctx context.Context, d Duty) {
	if l.c.Leading(ctx) != nil { // commands are refused until then
		return
	}
	for ctx.Err() == nil {
		if err := d.Run(ctx, l.c); ctx.Err() == nil {
			l.log.Error("a duty of the leader ended early; restarting it", "duty", d.Name, telemetry.LogError, err)
		}
		backoff.Sleep(ctx, dutyAgain)
	}
}

// CreateWithID starts a study under an id that the caller has derived from
// something that identifies the study for good. The id MUST have the form of
// record.NewID. CreateWithID is idempotent: if a study has the id already, it
// returns that study unchanged. The error wraps ledger.ErrNameTaken or ErrNotLeader. It is for callers who may die
// between the creation and noting it down, such as the controller of Study resources.
func (c *Coordinator) CreateWithID(ctx context.Context, id string, s *study.Study) (*record.Study, error) {
	return c.create(ctx, s, func(time.Time) string { return id })
}

// Epoch returns the epoch of this replica's term; a later term has a larger one. The
// error is ErrNotLeader if this replica does not lead.
func (c *Coordinator) Epoch(ctx context.Context) (int64, error) {
	return query(ctx, c, func(_ context.Context, l *leader, _ time.Time) (int64, error) { return l.writer.Epoch(), nil })
}

// Summaries returns the studies with the given ids that this replica leads, or all
// of its studies if no id is given, in no particular order. What it returns is
// durable. Of all studies, those that have ended may have only the heads of their specifications
// (see study.Study.Head). The error is ErrNotLeader if this replica does not lead. Whole specifications are read from
// the ledger after the loop has answered, since the loop must not wait for them.
func (c *Coordinator) Summaries(ctx context.Context, ids ...string) ([]ledger.Summary, error) {
	var all []ledger.Summary
	var heads []int // of those in all that are to be read
	err := c.command(ctx, func(_ context.Context, l *leader, _ time.Time) error {
		add := func(r *studies.Study) { all = append(all, ledger.Summary{Study: r.Spec, Status: r.Status}) }
		for _, id := range ids {
			if r := l.studies.Get(id); r != nil {
				if r.Head {
					heads = append(heads, len(all))
				}
				add(r)
			}
		}
		if len(ids) == 0 {
			for r := range l.studies.All() {
				add(r)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the studies: %w", err)
	}
	for _, i := range heads {
		whole, err := c.ledger.Study(ctx, all[i].Study.ID)
		if err != nil {
			return nil, fmt.Errorf("look at the studies: %w", err)
		}
		all[i].Study = whole.Study
	}
	return all, nil
}

// Useful returns how many slots the running studies can use, by pool. The error
// is ErrNotLeader if this replica does not lead.
func (c *Coordinator) Useful(ctx context.Context) (map[string]int, error) {
	useful := map[string]int{}
	err := c.command(ctx, func(_ context.Context, l *leader, _ time.Time) error {
		for r := range l.studies.Loaded() {
			if r.Running() {
				useful[r.Pool()] += r.Useful()
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at what the studies can use: %w", err)
	}
	return useful, nil
}
