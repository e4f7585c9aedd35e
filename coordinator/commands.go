package coordinator

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

var (
	// ErrIncompatible says that a changed study file is incompatible with the
	// study. The error that wraps it lists the differences.
	ErrIncompatible = study.NewError(study.ErrPrecondition, "the changed study does not fit what has been evaluated")
	// ErrRunning says that a study cannot be deleted while it runs, unless forced.
	ErrRunning = study.NewError(study.ErrPrecondition, "the study is running: stop it first, or force its deletion")
	// ErrBroker says that NATS did not do what a change needs, so nothing was changed.
	// The same call may succeed later.
	ErrBroker = study.NewError(study.ErrUnavailable, "NATS is not ready")
)

// command runs f in the leader's loop, with the term's context, and waits until
// its changes are durable. The error is ErrNotLeader if this replica does not
// lead. If the error wraps ledger.ErrUnknown, or ctx ends first, the command may
// or may not have been carried out. If ctx ends first, f may even run later, so the
// caller MUST NOT read what f writes unless the error is nil.
//
// Nothing else happens while f runs, so what takes long MUST be done before or after it. An error of f
// is answered at once, without a commit: what f had changed by then is committed all the same.
func (c *Coordinator) command(ctx context.Context, f func(ctx context.Context, l *leader, now time.Time) error) error {
	l := c.term.Load()
	if l == nil {
		return ErrNotLeader
	}
	done := make(chan error, 1)
	sent := l.inbox.Submit(ctx, inbox.Work{
		Refused: func() { done <- ErrNotLeader },
		Do: func(ctx context.Context, now time.Time) error {
			err := endedTerm(ctx, f(ctx, l, now))
			if err == nil {
				l.group.Answer(func(err error) { done <- err })
				return nil
			}
			done <- err
			if errors.Is(err, ledger.ErrFenced) || errors.Is(err, ledger.ErrUnknown) {
				return err // nothing more can be written in this term
			}
			return nil
		},
	})
	answer, err := await(ctx, l, sent, done)
	return cmp.Or(err, answer)
}

// await waits for the answer to work that a caller has sent to the loop, or could not send. The
// error is ErrNotLeader if the term is over and has not done the work. It looks for an answer once more after the
// term is over: both may be ready, and a change that was made must not be reported as refused.
func await[T any](ctx context.Context, l *leader, sent bool, done <-chan T) (answer T, err error) {
	if !sent && ctx.Err() == nil {
		return answer, ErrNotLeader
	}
	select {
	case answer = <-done:
		return answer, nil
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	case <-l.inbox.Over():
	}
	select {
	case answer = <-done: // a term answers everything that it did before it is over
		return answer, nil
	default:
		return answer, ErrNotLeader
	}
}

// onStudy is command for an f about a study.
func (c *Coordinator) onStudy(ctx context.Context, nameOrID string,
	f func(ctx context.Context, l *leader, r *studies.Study, now time.Time) error) error {
	return c.command(ctx, func(ctx context.Context, l *leader, now time.Time) error {
		r, err := l.studies.Find(nameOrID)
		if err != nil {
			return err
		}
		return f(ctx, l, r, now)
	})
}

// query is command for an f that returns something.
func query[T any](ctx context.Context, c *Coordinator, f func(ctx context.Context, l *leader, now time.Time) (T, error)) (none T, _ error) {
	var got T
	err := c.command(ctx, func(ctx context.Context, l *leader, now time.Time) (err error) {
		got, err = f(ctx, l, now)
		return err
	})
	if err != nil { // if ctx has ended, the loop may still write got
		return none, err
	}
	return got, nil
}

// endedTerm is the error for the caller of a command that failed, if it failed because
// the term has ended: nothing has been stored, and another leader can carry the command
// out. An unknown outcome stays unknown.
func endedTerm(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ErrNotLeader) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotLeader, err)
}

// setUpPools creates pools, so that their workers can wait for assignments. It MUST be called BEFORE a study names
// a pool, and outside the loop: an assignment to a pool that is not there would be in nobody's queue, and the
// broker may take long to answer.
func (c *Coordinator) setUpPools(ctx context.Context, pools []string) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.o.Bus.Setup(bounded, pools)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("set up pools %s: %w", strings.Join(pools, ", "), err)
	if ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrBroker, err)
}

// checkJob returns a *study.Problems for a study that brings a Job without a namespace to
// run it in.
func checkJob(s *study.Study) error {
	if _, ok := study.Namespace(s.Metadata.Name); ok || s.Spec.Trial.Job == nil {
		return nil
	}
	return &study.Problems{List: []study.Problem{{
		Path: "spec.trial.job",
		Message: "only a Study resource of Kubernetes can bring a Job, which runs in the resource's namespace: " +
			"create the study with kubectl apply, or use a pool whose workers have a template",
	}}}
}

// checkSize returns a *study.Problems for a study that is too large for the ledger, or
// whose trials would be too large to be sent to workers.
// It MUST be called BEFORE the study joins the leader's batch, where it would block
// everything else. A study's JSON can be several times as long as its file.
func checkSize(s *study.Study) error {
	var b ledger.Batch
	b.PutStudy(&record.Study{ID: record.NewID(rand.Reader, time.Now()), Definition: *s, Created: time.Now()})
	err := b.Err()
	if err == nil {
		return messaging.CheckSize(s)
	}
	if errors.Is(err, ledger.ErrTooLarge) {
		return &study.Problems{List: []study.Problem{{
			Message: fmt.Sprintf("the study takes more than %d bytes as JSON: shorten its texts (each <, > and & takes six bytes)", ledger.MaxBytes),
		}}}
	}
	return err
}

// Create starts a study and returns its record. The caller MUST have validated the
// study (see file.Parse). The error wraps ledger.ErrNameTaken, ErrNotLeader, disk.ErrNearlyFull or ErrBroker, is
// a *study.Problems if the study is too large for the ledger, or brings a Job although it
// is no resource of Kubernetes, or is a *quota.Exceeded.
func (c *Coordinator) Create(ctx context.Context, s *study.Study) (*record.Study, error) {
	return c.create(ctx, s, func(now time.Time) string { return record.NewID(rand.Reader, now) })
}

// create starts a study. It calls newID in the leader's loop. All that can fail without the study comes first, and
// what takes long is outside of the loop: earlier studies are read, and pools set up. Whether the name is free and
// whether quotas allow the study is decided in the loop, where nothing can change in between.
func (c *Coordinator) create(ctx context.Context, s *study.Study, newID func(now time.Time) string) (*record.Study, error) {
	if err := cmp.Or(checkJob(s), checkSize(s), c.space.Lacking()); err != nil {
		return nil, err
	}
	if c.term.Load() == nil {
		return nil, ErrNotLeader
	}
	s, err := c.learn(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := c.setUpPools(ctx, []string{s.Spec.Pool}); err != nil {
		return nil, err
	}
	shares := quota.From(ctx)
	return query(ctx, c, func(ctx context.Context, l *leader, now time.Time) (*record.Study, error) {
		id := newID(now)
		if r := l.studies.Get(id); r != nil { // CreateWithID is repeated
			return new(r.Spec), nil
		}
		r := studies.New(&record.Study{ID: id, Definition: *s, Created: now})
		if err := l.calls.AdmitStudy(shares, r); err != nil {
			return nil, err
		}
		return new(r.Spec), l.studies.Create(ctx, r, now)
	})
}

// Stop ends a running study: it withdraws queued trials and cancels running ones.
// Stopping a study that has ended changes nothing.
func (c *Coordinator) Stop(ctx context.Context, nameOrID, reason string) error {
	return c.onStudy(ctx, nameOrID, func(_ context.Context, l *leader, r *studies.Study, now time.Time) error {
		if r.Running() {
			l.studies.Step(r, engine.Stop{At: now, Reason: reason})
		}
		return r.Broken
	})
}

// Resume continues a study that has ended: trials that have failed by then no longer count for its end.
// Resuming a study that runs changes nothing. The error wraps engine.ErrRefused if something else ends
// the study, or is a *quota.Exceeded.
func (c *Coordinator) Resume(ctx context.Context, nameOrID string) error {
	shares := quota.From(ctx)
	return c.onStudy(ctx, nameOrID, func(ctx context.Context, l *leader, r *studies.Study, now time.Time) error {
		if r.Running() {
			return nil
		}
		if _, err := l.studies.EngineOf(ctx, r, now); err != nil {
			return err
		}
		if err := l.calls.AdmitResume(shares, r); err != nil {
			return err
		}
		out := l.studies.Step(r, engine.Resume{At: now})
		if out.Answer != nil && out.Answer.Err != nil {
			return out.Answer.Err
		}
		r.CapacityTold = -1 // the pool may have changed meanwhile
		return r.Broken
	})
}

// Update replaces a study's specification with a compatible one, which may widen or narrow
// the space: see study.Compatible. A study that had
// ended resumes if the new specification allows it. The error wraps ErrIncompatible
// if the two are incompatible, is a *study.Problems if the new one is too large
// for the ledger, or is a *quota.Exceeded. version is that of the space that the new one was
// made from; 0 means any. If the new one has no attributes, the study keeps its own.
//
// Of two callers whose files are made from the same version, as those that learn parameters at once, the second is
// refused: it would take back what the first has added. All checks come BEFORE the first change: see command.
func (c *Coordinator) Update(ctx context.Context, nameOrID string, s *study.Study, version int) error {
	if err := checkSize(s); err != nil {
		return err
	}
	if c.term.Load() == nil {
		return ErrNotLeader
	}
	if err := c.setUpPools(ctx, []string{s.Spec.Pool}); err != nil {
		return err
	}
	shares := quota.From(ctx)
	return c.onStudy(ctx, nameOrID, func(ctx context.Context, l *leader, r *studies.Study, now time.Time) error {
		if _, err := l.studies.EngineOf(ctx, r, now); err != nil { // compare with the whole specification
			return err
		}
		if now := r.Spec.SpaceVersion(); version != 0 && version != now {
			return study.NewError(ErrIncompatible, fmt.Sprintf("the study's space has version %d by now, not %d", now, version))
		}
		if differences := study.Compatible(&r.Spec.Definition, s); len(differences) > 0 {
			return fmt.Errorf("%w:\n  %s", ErrIncompatible, strings.Join(differences, "\n  "))
		}
		if err := l.calls.AdmitUpdate(shares, r, s); err != nil {
			return err
		}
		if study.NewSpace(&r.Spec.Definition, s) {
			// What is being computed for the earlier space is of no use.
			r.StopAsking()
			if err := l.studies.Prepare(r); err != nil {
				return err
			}
		}
		spec := r.Spec // its id, and when it was created, stay
		s.Spec.Recall(&spec.Definition.Spec)
		noted := spec.Definition.Spec.Attributes
		if spec.Definition = *s; s.Spec.Attributes == nil {
			spec.Definition.Spec.Attributes = noted
		}
		l.studies.Step(r, engine.Update{At: now, Study: spec})
		r.CapacityTold = -1 // the pool may have changed
		return r.Broken
	})
}

// Annotate sets attributes of a study, or removes those that are nil; others stay. The error is a
// *study.Problems if they are too large.
func (c *Coordinator) Annotate(ctx context.Context, nameOrID string, attributes map[string]any) error {
	return c.onStudy(ctx, nameOrID, func(ctx context.Context, l *leader, r *studies.Study, now time.Time) error {
		if _, err := l.studies.EngineOf(ctx, r, now); err != nil { // the whole specification
			return err
		}
		spec := r.Spec
		spec.Definition.Spec.Attributes = study.WithAttributes(spec.Definition.Spec.Attributes, attributes)
		if problems := study.CheckAttributes("attributes", spec.Definition.Spec.Attributes); len(problems) > 0 {
			return &study.Problems{List: problems}
		}
		if err := checkSize(&spec.Definition); err != nil {
			return err
		}
		l.studies.Step(r, engine.Update{At: now, Study: spec})
		return r.Broken
	})
}

// Delete deletes a study, its trials and its messages. It refuses a running study
// with ErrRunning unless force is set; then it stops the study first, so that its
// workers are told at once, and not only at their next heartbeats.
func (c *Coordinator) Delete(ctx context.Context, nameOrID string, force bool) error {
	return c.onStudy(ctx, nameOrID, func(_ context.Context, l *leader, r *studies.Study, now time.Time) error {
		if r.Status.State == study.Running && !force {
			return fmt.Errorf("study %q: %w", nameOrID, ErrRunning)
		}
		if r.Running() {
			l.studies.Step(r, engine.Stop{At: now, Reason: "deleted"})
		}
		l.studies.Remove(r)
		return nil
	})
}
