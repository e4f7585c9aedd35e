package coordinator

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
)

// loop is what a leader does for the length of a term. It alone touches the studies and what the
// next commit stores; all others hand it work through the inbox. A round has these duties, in this
// order:
//
//  1. Apply: the work that waits in the inbox is done. That is messages of workers and the cursors
//     of their streams, heartbeats, answers of optimisers, calls of clients and users. What changes
//     goes into the commit group, together with what is to follow from it.
//  2. Let time pass: leases that have expired end their attempts, and engines get the ticks that
//     they wanted.
//  3. Answer the calls of clients that wait for trials, if there are some by now. Their answers
//     join the group.
//  4. Commit. Refused results are buried first. Then one transaction of etcd makes the records and
//     the cursors durable. It compares the epoch, so it fails if another replica leads: then
//     the term ends, and nothing of the group is released.
//  5. Release what the group held back: spans, messages to workers, requests to optimisers, and the
//     answers to callers. Nobody hears of a change before it is durable, or a leader that dies
//     could have promised what its successor does not know.
//  6. Begin a recommendation, if it is time for one.
//
// Then the loop waits for work, or for the time when a lease, an engine, a call or a curve is due.
func (l *leader) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case w := <-l.inbox.Waiting():
			if err := w.Do(ctx, time.Now()); err != nil {
				return err
			}
		case <-timer.C:
		}
		if err := l.gather(ctx); err != nil {
			return err
		}
		next := earliest(l.tick(time.Now()), l.calls.Answer(time.Now()))
		l.group.Exported(l.spans.Through())
		if err := l.commit(ctx); err != nil {
			return err
		}
		l.recommender.Next(ctx, time.Now())
		next = earliest(next, l.group.Due())
		timer.Reset(max(0, min(time.Until(next), lease.CheckEvery)))
	}
}

// earliest returns the earlier of two times, of which the second may be zero for never.
func earliest(next, due time.Time) time.Time {
	if !due.IsZero() && due.Before(next) {
		return due
	}
	return next
}

// gather applies the waiting work until the inbox is empty or the group is full.
func (l *leader) gather(ctx context.Context) error {
	for !l.group.Full() {
		select {
		case w := <-l.inbox.Waiting():
			if err := w.Do(ctx, time.Now()); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// commit makes the changes durable, and only then releases what depends on them. The mutants
// release it earlier, which the simulation has to notice.
func (l *leader) commit(ctx context.Context) error {
	if !mutant.On(mutant.CommitFirst) {
		l.publisher.Add(l.group.Messages(), time.Time{})
	}
	if !mutant.On(mutant.Answer) {
		l.group.Reply(nil)
	}
	released, err := l.group.Commit(ctx)
	if err != nil {
		l.group.Reply(endedTerm(ctx, err))
		return err
	}
	for i := range released.Ended {
		t := &released.Ended[i]
		// A histogram's exemplar leads from a slow trial to its trace.
		traced := l.spans.Trial(context.WithoutCancel(ctx), t.Study, &t.Trial, released.Committed)
		l.c.metrics.Ended(traced, t.Study.Definition.Metadata.Name, &t.Trial, released.Committed)
	}
	l.publisher.Add(&released.Messages, released.Committed)
	l.request(ctx, released.Asks, l.requests.Ask)
	l.request(ctx, released.Fallbacks, l.requests.FallBack)
	for _, j := range released.Judges {
		if r := l.studies.Get(j.Study); r != nil && r.Engine != nil {
			l.requests.Judge(ctx, j.Study, j.Judge)
		}
	}
	l.group.Reply(nil)
	return nil
}

// request makes requests of engines, unless a study was broken or deleted since.
func (l *leader) request(ctx context.Context, asks []commit.Ask, send func(context.Context, *studies.Study, *engine.Ask)) {
	for _, a := range asks {
		if r := l.studies.Get(a.Study); r != nil && r.Engine != nil {
			send(ctx, r, a.Ask)
		}
	}
}
