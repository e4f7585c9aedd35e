package coordinator

import (
	"context"
	"reflect"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/study"
)

// Used returns how much of each share is in use, in their order. The error is ErrNotLeader if this
// replica does not lead.
func (c *Coordinator) Used(ctx context.Context, shares []quota.Share) ([]quota.Use, error) {
	type counted struct {
		name        string
		bytes, open int64
	}
	studies, err := query(ctx, c, func(_ context.Context, l *leader, _ time.Time) ([]counted, error) {
		all := make([]counted, 0, len(l.studies.runs))
		for _, r := range l.studies.runs {
			s := counted{r.name(), r.bytes, 0}
			if r.running() {
				s.open = int64(l.opens(r, 0))
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
			}
		}
	}
	return uses, nil
}

// used counts what a share has in use.
func (l *leader) used(s *quota.Share) quota.Use {
	use := l.usedNow(s)
	for _, r := range l.studies.runs {
		if s.Covers(r.name()) {
			use[quota.Studies]++
			use[quota.StudyBytes] += r.bytes
		}
	}
	return use
}

// usedNow counts only what is in use of running studies, in a time that does not grow with the number of
// studies that have ended.
func (l *leader) usedNow(s *quota.Share) quota.Use {
	use := quota.Use{}
	for _, r := range l.studies.loaded {
		if r.running() && s.Covers(r.name()) {
			use[quota.OpenTrials] += int64(l.opens(r, 0))
		}
	}
	return use
}

// opens returns how many trials of a running study may be open at once, from now on. A study with a
// command has as many evaluated as it can. Of other studies these are the open trials and those for
// which clients wait, of which a call adds some.
func (l *leader) opens(r *run, call int) int {
	open := r.status.Counts.Open()
	if !r.byClients() {
		return max(open, r.useful())
	}
	room := r.spec.Definition.Spec.Parallelism - open
	if room <= 0 {
		return open
	}
	call -= r.status.Counts.Pending // clients get these first
	if len(r.calls) > 0 && call < room {
		held := r.holds()
		for _, a := range r.calls {
			call += max(0, a.count-held[a.client])
		}
	}
	return open + max(0, min(call, room))
}

// admitStudy returns an error if there is no room in the caller's quotas for a study that has not
// been there, or has ended.
func (l *leader) admitStudy(shares []quota.Share, r *run) error {
	more := quota.Use{quota.Studies: 1, quota.StudyBytes: r.bytes}
	if !r.status.State.Terminal() && !r.byClients() {
		more[quota.OpenTrials] = int64(r.useful())
	}
	return quota.Admit(shares, r.name(), l.used, more)
}

// admitUpdate returns an error if there is no room in the caller's quotas for what a changed file
// adds to its study.
func (l *leader) admitUpdate(shares []quota.Share, r *run, s *study.Study) error {
	spec, before := r.spec, 0
	spec.Definition = *s
	changed := newRun(&spec)
	changed.status = r.status
	more := quota.Use{quota.StudyBytes: changed.bytes - r.bytes}
	if r.running() {
		before = l.opens(r, 0)
	}
	old := &r.spec.Definition.Spec
	mayResume := s.Spec.Budget != old.Budget || !reflect.DeepEqual(s.Spec.Objective, old.Objective) || !reflect.DeepEqual(s.Spec.Limits, old.Limits)
	if !changed.byClients() && (r.running() || mayResume) {
		more[quota.OpenTrials] = int64(max(r.status.Counts.Open(), changed.useful()) - before)
	}
	return quota.Admit(shares, r.name(), l.used, more)
}

// admitCall returns an error if there is no room in the caller's quotas for the trials that a call
// waits for.
func (l *leader) admitCall(shares []quota.Share, a *asking) error {
	if len(shares) == 0 {
		return nil
	}
	more := l.opens(a.run, max(0, a.count-a.run.holds()[a.client])) - l.opens(a.run, 0)
	return quota.Admit(shares, a.run.name(), l.usedNow, quota.Use{quota.OpenTrials: int64(more)})
}

// admitEvent returns an error if there is no room in the caller's quotas for what an event adds to
// a study. A request that is repeated adds nothing.
func (l *leader) admitEvent(shares []quota.Share, r *run, ev engine.Event) error {
	wish, ok := ev.(engine.Enqueue)
	if !ok || len(shares) == 0 || !r.running() || r.engine.Requested(wish.RequestID) {
		return nil
	}
	more := 1
	if !r.byClients() {
		more = max(0, r.status.Counts.Open()+1-l.opens(r, 0))
	}
	return quota.Admit(shares, r.name(), l.usedNow, quota.Use{quota.OpenTrials: int64(more)})
}
