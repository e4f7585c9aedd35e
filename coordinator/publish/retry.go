package publish

import (
	"context"
	"slices"
	"time"
)

// retryEvery is how long the publisher waits before it tries again what the broker did not take.
// The engine alone would publish an assignment again much later, when nobody has claimed it.
const retryEvery = time.Second

// Run sends what is queued until ctx ends. It fails only if another leader has fenced this one.
// What fails is tried again each second if nothing else would repeat it: assignments and purges.
// Control messages are not: the worker's next heartbeat or result causes another one. Nor are withdrawals: a worker
// that claims the attempt is told to stop.
func (p *Publisher) Run(ctx context.Context) error {
	var failed queues
	retry := time.NewTimer(retryEvery)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.ready:
			q := p.takeQueued()
			if err := p.send(ctx, &q, &failed); err != nil {
				return err
			}
		case <-retry.C:
			p.retry(ctx, &failed)
			retry.Reset(retryEvery)
		}
	}
}

// retry queues once more what has failed. The loop drops the assignments that no longer wait for
// a claim: their trials may have ended meanwhile. It goes through the loop because only the loop may look at the
// engines.
func (p *Publisher) retry(ctx context.Context, failed *queues) {
	if failed.assignments.len()+failed.purged.len() == 0 {
		return
	}
	m := Messages{Assignments: failed.assignments.takeAll(), Purged: failed.purged.takeAll()}
	p.post(ctx, func(context.Context, time.Time) error {
		m.Assignments = slices.DeleteFunc(m.Assignments, func(a Assignment) bool { return !p.studies.Waits(a.Study, a.Trial, a.Nonce) })
		p.Add(&m, time.Time{}) // each has its own time
		return nil
	})
}
