package calls

import (
	"reflect"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/study"
)

// Used counts what a share has in use. Its time grows with the number of all studies, so it is for calls that
// change a study; those that clients repeat for each trial use usedNow.
func (c *Calls) Used(s *quota.Share) quota.Use {
	use := c.usedNow(s)
	for r := range c.studies.All() {
		if s.Covers(r.Name()) {
			use[quota.Studies]++
			use[quota.StudyBytes] += r.Bytes
		}
	}
	return use
}

// usedNow counts only what is in use of running studies, in a time that does not grow with the number of
// studies that have ended.
func (c *Calls) usedNow(s *quota.Share) quota.Use {
	use := quota.Use{}
	for r := range c.studies.Loaded() {
		if r.Running() && s.Covers(r.Name()) {
			use[quota.OpenTrials] += int64(c.opens(r, 0))
		}
		if s.Covers(r.Name()) {
			use[quota.TrialBytes] += c.TrialBytes(r)
		}
	}
	return use
}

// TrialBytes returns how many bytes the trials of a study have in memory, with those that may be open. A study
// that is not loaded has none: its trials are in etcd only.
func (c *Calls) TrialBytes(r *studies.Study) int64 {
	if r.Engine == nil {
		return 0
	}
	n := r.Engine.Bytes()
	if r.Running() {
		n += typical(r) * int64(c.opens(r, 0)-r.Status.Counts.Open())
	}
	return n
}

// typical returns about how many bytes a trial of a study has.
func typical(r *studies.Study) int64 { return record.TypicalBytes(&r.Spec.Definition.Spec) }

// Opens returns how many trials of a running study may be open at once, from now on.
func (c *Calls) Opens(r *studies.Study) int { return c.opens(r, 0) }

// opens returns how many trials of a running study may be open at once, from now on. A study with a
// command has as many evaluated as it can. Of other studies these are the open trials and those for
// which clients wait, of which a call adds some.
func (c *Calls) opens(r *studies.Study, call int) int {
	open := r.Status.Counts.Open()
	if !r.ByClients() {
		return max(open, r.Useful())
	}
	spare := r.Spec.Definition.Spec.Parallelism - open
	if spare <= 0 {
		return open
	}
	call -= r.Status.Counts.Pending // clients get these first
	if len(c.waiting[r]) > 0 && call < spare {
		holds := holdsOf(r)
		for _, a := range c.waiting[r] {
			call += max(0, a.Count-holds[a.Client])
		}
	}
	return open + max(0, min(call, spare))
}

// AdmitStudy returns an error if the caller's quotas do not allow a study that has not
// been there, or has ended. A running study with a command counts at once with all the trials that it
// can have open; one for clients counts them as they ask (AdmitCall).
func (c *Calls) AdmitStudy(shares []quota.Share, r *studies.Study) error {
	more := quota.Use{quota.Studies: 1, quota.StudyBytes: r.Bytes}
	if !r.Status.State.Terminal() && !r.ByClients() {
		more[quota.OpenTrials] = int64(r.Useful())
	}
	more[quota.TrialBytes] = typical(r) * max(1, more[quota.OpenTrials])
	return quota.Admit(shares, r.Name(), c.Used, more)
}

// AdmitUpdate returns an error if the caller's quotas do not allow what a changed file
// adds to its study. A change of the budget, the objective or the limits can resume a study that has
// ended, and counts as if it did: the engine decides that only when it gets the change.
func (c *Calls) AdmitUpdate(shares []quota.Share, r *studies.Study, s *study.Study) error {
	spec, before := r.Spec, 0
	spec.Definition = *s
	changed := studies.New(&spec)
	changed.Status = r.Status
	more := quota.Use{quota.StudyBytes: changed.Bytes - r.Bytes}
	if r.Running() {
		before = c.opens(r, 0)
	}
	old := &r.Spec.Definition.Spec
	mayResume := s.Spec.Budget != old.Budget || !reflect.DeepEqual(s.Spec.Objective, old.Objective) ||
		!reflect.DeepEqual(s.Spec.Limits, old.Limits)
	if !changed.ByClients() && (r.Running() || mayResume) {
		more[quota.OpenTrials] = int64(max(r.Status.Counts.Open(), changed.Useful()) - before)
		more[quota.TrialBytes] = typical(changed) * more[quota.OpenTrials]
	}
	return quota.Admit(shares, r.Name(), c.Used, more)
}

// AdmitResume returns an error if the caller's quotas do not allow what an ended study opens when it is resumed.
func (c *Calls) AdmitResume(shares []quota.Share, r *studies.Study) error {
	if r.ByClients() {
		return nil // AdmitCall counts their trials
	}
	more := int64(max(0, r.Useful()))
	return quota.Admit(shares, r.Name(), c.Used, quota.Use{quota.OpenTrials: more, quota.TrialBytes: typical(r) * more})
}

// AdmitCall returns an error if the caller's quotas do not allow the trials that a call
// waits for. The call MUST NOT be among those that wait yet: it would count twice.
func (c *Calls) AdmitCall(shares []quota.Share, a *Call) error {
	if len(shares) == 0 {
		return nil
	}
	more := c.opens(a.Study, max(0, a.Count-holdsOf(a.Study)[a.Client])) - c.opens(a.Study, 0)
	return quota.Admit(shares, a.Study.Name(), c.usedNow, quota.Use{
		quota.OpenTrials: int64(more), quota.TrialBytes: typical(a.Study) * int64(more),
	})
}

// AdmitEvent returns an error if the caller's quotas do not allow what an event adds to
// a study. A request that is repeated adds nothing.
func (c *Calls) AdmitEvent(shares []quota.Share, r *studies.Study, ev engine.Event) error {
	if len(shares) == 0 || r.Engine == nil {
		return nil
	}
	more := quota.Use{quota.TrialBytes: r.Engine.Adds(ev)}
	if wish, ok := ev.(engine.Enqueue); ok && (r.Running() || wish.Continues != 0) && !r.Engine.Requested(wish.RequestID) {
		more[quota.OpenTrials] = 1
		if !r.ByClients() {
			more[quota.OpenTrials] = int64(max(0, r.Status.Counts.Open()+1-c.opens(r, 0)))
		}
	}
	return quota.Admit(shares, r.Name(), c.usedNow, more)
}

// AdmitReports returns an error if the caller's quotas do not allow what a report adds, which has some
// metrics. It counts every point as a new one, since which of them the curve keeps shows only later.
func (c *Calls) AdmitReports(shares []quota.Share, r *studies.Study, metrics int) error {
	const perPoint = 24 // bytes
	return quota.Admit(shares, r.Name(), c.usedNow, quota.Use{quota.TrialBytes: int64(perPoint * metrics)})
}
