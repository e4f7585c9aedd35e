package kubejob

import (
	"cmp"
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const (
	// lookEvery is the interval of checks of an attempt without changes.
	lookEvery = time.Minute
	// warnEvery is the interval at which the events of a waiting resource are read.
	warnEvery = 7 * time.Second
	// quiet is for how long nobody is told that a pod waits: most start sooner.
	quiet = 5 * time.Second
)

// TimesOut says that the study's timeout counts from the start of the program: the pod may wait
// for a node and for its image for as long as StartTimeout and QueueTimeout allow.
func (*evaluator) TimesOut() {}

// open reports whether the resource has not ended.
func (v verdict) open() bool { return v.state == running || v.state == waiting || v.state == queued }

// await follows the resource to its end. The ending is nil if the program ended
// successfully; its reports then decide.
func (a *attempt) await(ctx context.Context) *evaluation.Ending {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tick, warn := time.NewTicker(lookEvery), time.NewTicker(warnEvery)
	defer tick.Stop()
	defer warn.Stop()
	begun := time.Now()
	var late, over <-chan time.Time // when the pod must have started, and when the program must have ended
	for {
		known := a.sub.evidence(time.Now())
		a.logs.observe(known.pods)
		v := judge(known, a.success, a.failure, a.container)
		if over == nil {
			over = a.deadline(known.pods, known.now)
		}
		switch {
		case !v.open():
			a.logs.finish(logPatience)
			known = a.sub.evidence(time.Now())
			a.summaries(known.pods)
			return a.ending(ctx, v, known.pods)
		case v.state == running:
			late = nil
			a.say("")
		default:
			var e *evaluation.Ending
			if late, e = a.waits(ctx, v, begun); e != nil {
				return e
			}
		}
		select {
		case <-a.sub.changed:
		case <-late:
		case <-warn.C:
			a.readWarning(ctx, v)
		case <-tick.C:
			a.check(ctx)
		case <-a.t.ended:
			return a.told(ctx)
		case <-over:
			cancel(evaluation.ErrTimeout)
			return a.stop(ctx)
		case <-ctx.Done():
			return a.stop(ctx)
		}
	}
}

// waits handles a resource whose program has not started. It returns when it must have, or the
// attempt's ending if it never will.
func (a *attempt) waits(ctx context.Context, v verdict, begun time.Time) (late <-chan time.Time, e *evaluation.Ending) {
	left := a.left(v)
	cause := a.cause(ctx, v, left)
	if v.start || left <= 0 || unmendable(a.warned) {
		a.delete(ctx, metav1.DeletePropagationBackground)
		return nil, ending(messaging.OutcomeFailed, messaging.ReasonStart, "the pod did not start: "+cause)
	}
	if time.Since(begun) >= quiet {
		a.say(cause)
	}
	return time.After(left), nil
}

// readWarning reads what the cluster's events say of a resource that waits. If a quota on the
// number of pods refuses its own, ended resources make room.
func (a *attempt) readWarning(ctx context.Context, v verdict) {
	if v.state == waiting {
		a.warned = a.warning(ctx, v.about)
	}
	if strings.Contains(a.warned, "exceeded quota") && strings.Contains(a.warned, "count/pods") {
		if object := a.sub.evidence(time.Now()).object; object != nil {
			a.deleteOldestEnded(ctx, object)
		}
	}
}

// say tells the leader what the attempt waits for; an empty text says that it runs.
func (a *attempt) say(cause string) {
	if a.task.Waiting == nil {
		return
	}
	if a.named != nil { // without names of pods, trials that wait for the same have the same cause
		cause = a.named.ReplaceAllString(cause, "…")
	}
	a.task.Waiting(cause)
}

// deadline returns when the program will have run for the study's timeout; nil if it has not
// started, or may run for ever. The clock of the node is used only for a program that an earlier
// process has seen start.
func (a *attempt) deadline(pods []*corev1.Pod, now time.Time) <-chan time.Time {
	timeout, first := time.Duration(a.task.Assignment.Run.Timeout), time.Time{}
	for _, p := range pods {
		if at := began(p); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if timeout <= 0 || first.IsZero() {
		return nil
	}
	if !a.resumed {
		first = now
	}
	return time.After(first.Add(timeout).Sub(now))
}

// left returns how long the resource may go on waiting.
func (a *attempt) left(v verdict) time.Duration {
	if v.state == queued {
		a.admitted = time.Now()
		return a.options.QueueTimeout - time.Since(v.since)
	}
	since := v.since
	if since.Before(a.admitted) {
		since = a.admitted
	}
	return a.options.StartTimeout - time.Since(since)
}

// cause returns what the resource waits for, in the words of the cluster. Its events explain why
// there is no pod, and why a pod that has a node is not ready.
func (a *attempt) cause(ctx context.Context, v verdict, left time.Duration) string {
	if a.about != v.about {
		a.about, a.warned = v.about, ""
	}
	if left <= 0 && a.warned == "" && v.about != "" {
		a.warned = a.warning(ctx, v.about)
	}
	if v.about == a.name {
		return cmp.Or(a.warned, v.cause)
	}
	if v.hindered || a.warned == "" {
		return v.cause
	}
	return v.cause + "; " + a.warned
}
