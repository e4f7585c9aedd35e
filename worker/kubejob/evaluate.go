package kubejob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/jobsidecar"
)

const (
	// logPatience limits how long the logs of ended containers are read.
	logPatience = 20 * time.Second
	// endPatience is the time that a program may take to end by itself after its report
	// has ended the attempt.
	endPatience = 10 * time.Second
	// removal is the time that deleting a resource takes in addition to its pods'
	// grace.
	removal = 5 * time.Second
)

// output is the output of an attempt's pods. One goroutine uses it.
type output interface {
	// observe reads the logs of containers that have one.
	observe(pods []*corev1.Pod)
	// finish waits until every log has been read to its end, for at most patience.
	finish(patience time.Duration)
	// unread returns, after finish, the error of a log that was not read to its end.
	unread(pods []*corev1.Pod) error
}

// attempt is an attempt that is being evaluated.
type attempt struct {
	*plan
	task evaluation.Task
	name string
	// named matches the names of the resource and its pods.
	named *regexp.Regexp
	t     *transcript
	sub   *subscription
	logs  output
	// stream is the Job that the attempt shares with others of its slot; nil without one.
	stream *stream
	// resumed means that an earlier process of this worker had made the resource.
	resumed bool
	// sent is when the attempt's line was given to the program of a stream.
	sent time.Time
	// admitted is when the resource was last seen in a queue.
	admitted time.Time
	// warned is what the cluster's events last said of what the attempt waits for.
	warned, about string
}

// Evaluate creates the attempt's resource, or takes over the existing one, and waits
// for its end.
func (e *evaluator) Evaluate(ctx context.Context, task evaluation.Task) evaluation.Ending {
	task.Slot = e.slot
	evaluate := e.runner.evaluate
	if task.Assignment.Run.Mode == study.ModeStream {
		evaluate = e.evaluateStream
	}
	ending := evaluate(ctx, task)
	ending.Checkpoint = cmp.Or(ending.Checkpoint, task.Assignment.Checkpoint)
	return ending
}

func (r *Runner) evaluate(ctx context.Context, task evaluation.Task) evaluation.Ending {
	p, object, err := r.prepare(task)
	if err != nil {
		if p != nil { // an earlier process may have made it, when it was still allowed
			p.discard(ctx, JobName(task.Assignment))
		}
		return evaluation.Failed(messaging.ReasonCommand, evaluation.Bounded(err.Error(), messaging.MaxMessage))
	}
	t, err := newTranscript(task, p.template.savesCheckpoints(), r.options.Logger)
	if err != nil {
		return evaluation.Failed(messaging.ReasonCommand, evaluation.Bounded(err.Error(), messaging.MaxMessage))
	}
	a := &attempt{plan: p, task: task, name: object.GetName(), t: t,
		named: regexp.MustCompile(regexp.QuoteMeta(object.GetName()) + `[a-z0-9-]*`)}
	if e := a.reach(ctx); e != nil {
		return a.locate(*e)
	}
	a.sub = p.hub.subscribe(a.name, p.container)
	defer a.sub.close()
	a.logs = p.newFollowers(ctx, t)
	defer a.logs.finish(0)
	if a.resumed = a.sub.evidence(time.Now()).object != nil; a.resumed && a.keeps(ctx) {
		return evaluation.Ending{Kept: true}
	}
	if err := p.ensure(ctx, object, task.Assignment, a.say); err != nil {
		return a.locate(a.notMade(ctx, err))
	}
	return a.locate(t.conclude(a.await(ctx)))
}

// reach opens the attempt's namespace, or returns the attempt's ending. It retries until the start timeout
// has passed, since a namespace may be older than the worker's rights there, and says what it waits for.
func (a *attempt) reach(ctx context.Context) *evaluation.Ending {
	deadline, pause := time.Now().Add(a.options.StartTimeout), backoff.New(minPause, maxPause)
	for {
		err := a.open(ctx)
		if err == nil {
			return nil
		}
		if cause := evaluation.Stopped(ctx); cause != nil {
			return new(evaluation.StopEnding(cause))
		}
		if time.Now().After(deadline) {
			return new(evaluation.Failed(messaging.ReasonStart, evaluation.Bounded(err.Error(), messaging.MaxMessage)))
		}
		a.say(err.Error())
		pause.Wait(ctx)
	}
}

// Job returns the name of an attempt's resource; empty where a Job evaluates several.
func (e *evaluator) Job(a *messaging.Assignment) string {
	if a.Run.Mode == study.ModeStream {
		return ""
	}
	return JobName(a)
}

// prepare returns how an attempt is evaluated, and its resource. With an error, the plan
// may be nil.
func (r *Runner) prepare(task evaluation.Task) (*plan, *unstructured.Unstructured, error) {
	p, err := r.planOf(task.Assignment)
	if err != nil {
		return nil, nil, err
	}
	object, err := p.manifest(task)
	return p, object, err
}

// discard deletes a resource that must not be.
func (s *site) discard(ctx context.Context, name string) {
	if err := s.remove(context.WithoutCancel(ctx), name, metav1.DeletePropagationBackground); err != nil {
		s.options.Logger.Error("cannot delete a resource", "namespace", s.namespace, "name", name, telemetry.LogError, err)
	}
}

// notMade returns the ending of an attempt whose resource could not be created.
func (a *attempt) notMade(ctx context.Context, err error) evaluation.Ending {
	if cause := evaluation.Stopped(ctx); cause != nil {
		a.delete(ctx, metav1.DeletePropagationBackground) // a try may have created it
		return a.t.conclude(new(evaluation.StopEnding(cause)))
	}
	message := fmt.Sprintf("cannot create %s %s: %v", a.kind.Kind, a.name, err)
	if errors.Is(err, errSilent) {
		a.delete(ctx, metav1.DeletePropagationBackground)
		return a.t.conclude(ending(messaging.OutcomeHandedBack, messaging.ReasonPreempted, message))
	}
	reason := messaging.ReasonCommand
	if isQuota(err) || lacksRights(err) {
		reason = messaging.ReasonStart
	}
	return a.t.conclude(new(evaluation.Failed(reason, message)))
}

// check looks whether the resource still exists, in case the watch missed its deletion.
func (a *attempt) check(ctx context.Context) {
	there, err := a.exists(ctx, a.name)
	if err != nil {
		a.options.Logger.Warn("the cluster's API does not answer", telemetry.LogError, err)
	} else if !there {
		a.sub.missing()
	}
}

// ending converts the verdict on an ended resource.
func (a *attempt) ending(ctx context.Context, v verdict, pods []*corev1.Pod) *evaluation.Ending {
	if e := a.t.own(); e != nil {
		return e
	}
	var e *evaluation.Ending
	switch v.state {
	case succeeded:
		if cause := a.overStorage(ctx, pods); cause != "" {
			return ending(messaging.OutcomeFailed, messaging.ReasonExit, a.t.words("evicted: "+cause))
		}
		if e := a.unread(pods); e != nil {
			return e
		}
		killed := memoryKill(pods, a.container)
		if killed != "" && a.options.FailMemoryKills {
			return ending(messaging.OutcomeFailed, messaging.ReasonMemory, a.t.words(killed))
		}
		a.t.warn(killed)
		return nil
	case disrupted:
		// A pod on a node that does not answer may remain.
		a.delete(ctx, metav1.DeletePropagationBackground)
		return ending(messaging.OutcomeHandedBack, messaging.ReasonPreempted, v.cause)
	case retry:
		e = ending(messaging.OutcomeHandedBack, messaging.ReasonRetry, v.cause)
	case deadline:
		e = ending(messaging.OutcomeTimeout, messaging.ReasonTimeout, a.t.words("ran longer than its deadline: "+v.cause))
	case outOfMemory:
		e = ending(messaging.OutcomeFailed, messaging.ReasonMemory, a.t.words(v.cause))
	default:
		reason := messaging.ReasonExit
		if v.start {
			reason = messaging.ReasonCommand
		}
		e = ending(messaging.OutcomeFailed, reason, a.t.words(v.cause))
	}
	if v.code > 0 {
		e.Failure.ExitCode = &v.code
	}
	return e
}

// unread returns the ending of a program that ended successfully but whose log was not
// read completely: the last value read may be outdated. It is nil if everything was
// read, or if a sidecar has the summary.
func (a *attempt) unread(pods []*corev1.Pod) *evaluation.Ending {
	err := a.logs.unread(pods)
	switch {
	case a.t.summedUp():
		return nil
	case len(pods) == 0 && a.kind.GroupKind() == jobKind:
		return ending(messaging.OutcomeHandedBack, messaging.ReasonLog, "its pod was never seen, so its log was not read")
	case apierrors.IsForbidden(err): // whoever runs the cluster forbids it: retrying does not help
		return ending(messaging.OutcomeFailed, messaging.ReasonLog, err.Error())
	case err != nil:
		return ending(messaging.OutcomeHandedBack, messaging.ReasonLog, err.Error())
	}
	return nil
}

// summaries reads the sidecars' summaries from the pods' status.
func (a *attempt) summaries(pods []*corev1.Pod) {
	for _, p := range pods {
		for _, s := range p.Status.InitContainerStatuses {
			if s.Name != sidecarName || s.State.Terminated == nil {
				continue
			}
			if summary, ok := jobsidecar.Parse(s.State.Terminated.Message); ok {
				a.t.summarise(summary)
			}
		}
	}
}

// told ends an attempt that a report has ended. The program may end by itself, which
// keeps its log available.
func (a *attempt) told(ctx context.Context) *evaluation.Ending {
	timer := time.NewTimer(endPatience)
	defer timer.Stop()
	for {
		known := a.sub.evidence(time.Now())
		if v := judge(known, a.success, a.failure, a.container); !v.open() {
			a.logs.finish(logPatience)
			return a.t.own()
		}
		select {
		case <-a.sub.changed:
			continue
		case <-timer.C:
		case <-ctx.Done():
		}
		a.end(ctx)
		return a.t.own()
	}
}

// keeps reports whether the worker leaves while keeping its resources.
func (a *attempt) keeps(ctx context.Context) bool {
	return a.options.Keep && a.task.Assignment.Run.Mode != study.ModeStream && errors.Is(evaluation.Stopped(ctx), evaluation.ErrLeaving)
}

// stop ends an attempt after ctx has ended, within the study's grace.
func (a *attempt) stop(ctx context.Context) *evaluation.Ending {
	cause := evaluation.Stopped(ctx)
	if a.keeps(ctx) {
		return &evaluation.Ending{Kept: true}
	}
	a.end(ctx)
	e := evaluation.StopEnding(cause)
	if e.Outcome == messaging.OutcomeTimeout {
		e.Failure.Message = a.t.words(fmt.Sprintf("ran longer than its timeout of %s", a.task.Assignment.Run.Timeout))
	}
	return &e
}

// end deletes the resource, and reads on until it is gone or its grace is over. Pods
// are deleted first, so the resource exists as long as they do.
func (a *attempt) end(ctx context.Context) {
	a.delete(ctx, metav1.DeletePropagationForeground)
	timer := time.NewTimer(a.task.Assignment.Run.GracePeriod() + removal)
	defer timer.Stop()
	for {
		known := a.sub.evidence(time.Now())
		if known.gone || known.object == nil {
			break
		}
		a.logs.observe(known.pods)
		select {
		case <-a.sub.changed:
			continue
		case <-timer.C:
		case <-a.task.Kill:
		}
		break
	}
	a.summaries(a.sub.evidence(time.Now()).pods)
	a.logs.finish(time.Second)
}

// delete deletes the resource. If that fails, only its deadline and its owner can end
// it.
func (a *attempt) delete(ctx context.Context, how metav1.DeletionPropagation) {
	ctx = context.WithoutCancel(ctx)
	pause := backoff.New(minPause, maxPause)
	for tries := 1; ; tries++ {
		err := a.remove(ctx, a.name, how)
		if err == nil {
			return
		}
		if tries == 4 {
			a.options.Logger.Error("cannot delete a resource", "name", a.name, telemetry.LogError, err)
			return
		}
		pause.Wait(ctx)
	}
}
