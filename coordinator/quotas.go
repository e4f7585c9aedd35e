package coordinator

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/quota"
)

// Used returns how much of each share is in use, in their order. The error is ErrNotLeader if this
// replica does not lead. It is for people to read: what a quota allows is decided in the loop, see calls.Calls.
func (c *Coordinator) Used(ctx context.Context, shares []quota.Share) ([]quota.Use, error) {
	type counted struct {
		name                string
		bytes, open, trials int64
	}
	studies, err := query(ctx, c, func(_ context.Context, l *leader, _ time.Time) ([]counted, error) {
		all := make([]counted, 0, l.studies.Len())
		for r := range l.studies.All() {
			s := counted{r.Name(), r.Bytes, 0, l.calls.TrialBytes(r)}
			if r.Running() {
				s.open = int64(l.calls.Opens(r))
			}
			all = append(all, s)
		}
		return all, nil
	})
	if err != nil {
		return nil, err
	}
	uses := make([]quota.Use, len(shares)) // there may be many shares: the loop does not wait for this
	for i := range shares {
		uses[i] = quota.Use{}
		for _, s := range studies {
			if shares[i].Covers(s.name) {
				uses[i][quota.Studies]++
				uses[i][quota.StudyBytes] += s.bytes
				uses[i][quota.OpenTrials] += s.open
				uses[i][quota.TrialBytes] += s.trials
			}
		}
	}
	return uses, nil
}
