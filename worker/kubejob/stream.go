package kubejob

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/streaming"
)

// readPatience is the time that a program may take to read a stop line, and a connection to end once its program has.
const readPatience = time.Second

// evaluateStream lets the program of the slot's Job evaluate an attempt. A program that has
// evaluated others and ends without a report may not have read the line: a new Job then gets the
// attempt.
func (e *evaluator) evaluateStream(ctx context.Context, task evaluation.Task) evaluation.Ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.idle != nil {
		e.idle.Stop()
	}
	defer e.rest(ctx)
	p, err := e.runner.planOf(task.Assignment)
	if err != nil {
		return evaluation.Failed(messaging.ReasonCommand, evaluation.Bounded(err.Error(), messaging.MaxMessage))
	}
	t, err := newTranscript(task, p.template.savesCheckpoints(), e.runner.options.Logger)
	if err != nil {
		return evaluation.Failed(messaging.ReasonCommand, evaluation.Bounded(err.Error(), messaging.MaxMessage))
	}
	line, err := streaming.Line(task, "")
	if err != nil {
		return evaluation.Failed(messaging.ReasonCommand, evaluation.Bounded(err.Error(), messaging.MaxMessage))
	}
	kept := newAttemptLog(p.options.StateDir, task.Assignment.AttemptID, p.options.Logger)
	kept.open()
	defer func() { kept.close(t.lastLines()) }()
	for {
		a, failed := e.ensureStream(ctx, p, t)
		if failed != nil {
			return t.conclude(failed)
		}
		st := e.stream
		fresh := !st.used
		st.begin(t, kept)
		end := a.converse(ctx, line)
		place := a.locateTurn(fresh, time.Now())
		st.begin(nil, nil)
		if !end.stays || !st.attached() {
			e.discardStream(ctx)
		}
		if end.again && !fresh && ctx.Err() == nil {
			continue
		}
		ending := t.conclude(end.end)
		ending.Site, ending.Stages, ending.Attributes = place.Site, place.Stages, place.Attributes
		return ending
	}
}

// ensureStream returns the attempt in the slot's Job. It makes a Job for the assignment's study
// unless there is one whose program runs. If that fails, it returns the attempt's ending.
func (e *evaluator) ensureStream(ctx context.Context, p *plan, t *transcript) (*attempt, *evaluation.Ending) {
	task := t.task
	key, err := json.Marshal(struct {
		Study string
		Run   study.TrialTemplate
	}{task.Assignment.Study, task.Assignment.Run})
	if err != nil {
		return nil, new(evaluation.Failed(messaging.ReasonCommand, fmt.Sprintf("compare programs: %v", err)))
	}
	if e.stream != nil && (e.stream.key != string(key) || !e.stream.lives()) {
		e.discardStream(ctx)
	}
	a := &attempt{plan: p, task: task, t: t}
	if e.stream == nil {
		if end := a.reach(ctx); end != nil {
			return nil, new(a.locate(*end))
		}
		object, err := p.streamManifest(task)
		if err != nil {
			return nil, new(evaluation.Failed(messaging.ReasonCommand, evaluation.Bounded(err.Error(), messaging.MaxMessage)))
		}
		e.stream = p.newStream(ctx, object.GetName(), string(key))
		a.join(e.stream)
		if err := p.ensure(ctx, object, task.Assignment, a.say); err != nil {
			end := a.locate(a.notMade(ctx, err))
			e.discardStream(ctx)
			return nil, &end
		}
		return a, nil
	}
	a.join(e.stream)
	return a, nil
}

// join makes the attempt one of a Job that stays.
func (a *attempt) join(st *stream) {
	a.name, a.sub, a.logs, a.stream = st.name, st.sub, st, st
	a.named = regexp.MustCompile(regexp.QuoteMeta(st.name) + `[a-z0-9-]*`)
}

// turn is how an attempt in a Job that stays has come out.
type turn struct {
	// end is nil if the reports decide.
	end *evaluation.Ending
	// stays means that the program waits for its next line.
	stays bool
	// again means that the program may not have read the line.
	again bool
}

// converse sends the line to the Job's program, once it runs, and waits for the attempt's end.
func (a *attempt) converse(ctx context.Context, line []byte) turn {
	ctx, cancel := context.WithCancelCause(ctx)
	look, warn := time.NewTicker(lookEvery), time.NewTicker(warnEvery)
	defer look.Stop()
	defer warn.Stop()
	begun := time.Now()
	var taken <-chan error          // answers once the line is on its way, or cannot be sent
	var late, over <-chan time.Time // when the pod must have started, and when the program must have ended
	defer func() { cancel(nil); a.stream.sending.Wait() }()
	for {
		known := a.sub.evidence(time.Now())
		a.stream.observe(known.pods)
		v := judge(known, a.success, a.failure, a.container)
		switch {
		case !v.open():
			a.stream.finish(logPatience)
			return a.programEnded(ctx, v, a.sub.evidence(time.Now()).pods)
		case v.state == running:
			if late = nil; taken == nil {
				taken, a.sent = a.stream.send(ctx, known.pods, line), time.Now().UTC().Round(time.Millisecond)
			}
			a.say("")
		default:
			var e *evaluation.Ending
			if late, e = a.waits(ctx, v, begun); e != nil {
				return turn{end: e}
			}
		}
		select {
		case <-a.sub.changed:
		case <-late:
		case <-warn.C:
			a.readWarning(ctx, v)
		case <-look.C:
			a.check(ctx)
		case err := <-taken:
			if err != nil && ctx.Err() == nil {
				return turn{end: ending(messaging.OutcomeFailed, messaging.ReasonStart,
					a.t.words("the program cannot be sent its trial: "+err.Error()))}
			}
			over = a.timeout()
		case <-a.t.ended:
			return turn{end: a.t.own(), stays: true}
		case <-over:
			cancel(evaluation.ErrTimeout)
			return a.stopProgram(ctx)
		case <-ctx.Done():
			return a.stopProgram(ctx)
		}
	}
}

// locateTurn returns where an attempt of a Job that stays ran, and when it passed each stage, where its program has
// ended the attempt now. Only the Job's first attempt has waited for the pod.
func (a *attempt) locateTurn(first bool, now time.Time) evaluation.Ending {
	e := a.locate(evaluation.Ending{})
	switch {
	case !first && a.sent.IsZero():
		e.Stages = nil
		return e
	case !first:
		e.Stages = &messaging.Stages{Started: a.sent}
	}
	if !e.Stages.Started.IsZero() && e.Stages.Ended.IsZero() {
		e.Stages.Ended = now.UTC().Round(time.Millisecond)
	}
	return e
}

// timeout returns when the program will have run for the study's timeout, from now; nil without
// one.
func (a *attempt) timeout() <-chan time.Time {
	if timeout := time.Duration(a.task.Assignment.Run.Timeout); timeout > 0 {
		return time.After(timeout)
	}
	return nil
}

// programEnded returns how an attempt has come out whose program, or its pod, has ended.
func (a *attempt) programEnded(ctx context.Context, v verdict, pods []*corev1.Pod) turn {
	switch {
	case a.t.isEnded():
		return turn{end: a.t.own()}
	case v.state == deadline:
		return turn{end: ending(messaging.OutcomeHandedBack, messaging.ReasonPreempted, "the Job has reached its own deadline: "+v.cause)}
	case v.state != succeeded:
		return turn{end: a.ending(ctx, v, pods)}
	case !a.t.spoke() && a.stream.broken(): // it may have ended for that reason
		return turn{again: true, end: ending(messaging.OutcomeHandedBack, messaging.ReasonPreempted, errDetached.Error())}
	}
	message := a.t.words("the program ended before it was done with the trial (exit code 0)")
	return turn{again: !a.t.spoke(), end: ending(messaging.OutcomeFailed, messaging.ReasonExit, message)}
}

// stopProgram ends an attempt after ctx has ended. A program that reads stop lines is asked to end
// the trial and stays; any other is ended with its Job.
func (a *attempt) stopProgram(ctx context.Context) turn {
	cause := evaluation.Stopped(ctx)
	if a.askToStop(ctx, cause) {
		return turn{end: new(evaluation.StopEnding(cause)), stays: true}
	}
	return turn{end: a.stop(ctx)}
}

// askToStop sends a stop line to a program that reads such lines, and waits for the trial's end,
// at most for the grace. It reports whether the program has ended the trial.
func (a *attempt) askToStop(ctx context.Context, cause error) bool {
	line, err := streaming.StopLine(a.task.Assignment, cause)
	if err != nil || line == nil || !a.stream.stoppable() {
		return false
	}
	timer := time.NewTimer(a.task.Assignment.Run.GracePeriod())
	defer timer.Stop()
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), readPatience) // ctx has ended
	defer cancel()
	if a.stream.write(reading, line) != nil {
		return false
	}
	select {
	case <-a.t.ended:
	case <-timer.C:
	case <-a.task.Kill:
	}
	return a.t.isEnded()
}
