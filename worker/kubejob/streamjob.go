package kubejob

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
	"github.com/fantasia-hpo/fantasia/worker/streaming"
)

// closeGrace is the time that an idle program has to end after its standard input is closed.
const closeGrace = 5 * time.Second

// streamManifest returns a Job whose program evaluates one trial after another, without an owner.
func (p *plan) streamManifest(task evaluation.Task) (*unstructured.Unstructured, error) {
	if p.options.Attach == nil {
		return nil, fmt.Errorf("spec.trial.mode: this worker cannot send trials to programs of mode stream")
	}
	a := task.Assignment
	object, err := p.template.render(nil, nil, streamWords(task))
	if err != nil {
		return nil, fmt.Errorf("%w; in mode stream the program gets the parameters as lines of input, and the template can "+
			"only contain the words %s", err, strings.Join(study.StreamJobWords(), ", "))
	}
	if err := p.permitted(object); err != nil {
		return nil, err
	}
	spec := child(object.Object, "spec")
	for _, field := range []string{"parallelism", "completions"} {
		if n, ok := spec[field]; ok && n != int64(1) {
			return nil, fmt.Errorf("template: spec.%s is %v, must be 1 or left out: in mode stream one pod evaluates one trial "+
				"after another", field, n)
		}
	}
	if err := once(spec); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	p.options.bound(spec, 0, 0)
	variables := []variable{
		{name: "PYTHONUNBUFFERED", value: "1"}, {name: "FANTASIA_STUDY", value: escape(a.StudyName)},
		{name: "FANTASIA_SLOT", value: strconv.Itoa(task.Slot)},
	}
	name, marks := streamLabels(task, p.options.Worker)
	i := injection{container: p.container, labels: marks,
		variables: append(variables, exporter(p.options.Environ, p.namespace)...), grace: a.Run.GracePeriod()}
	if err := i.apply(object.Object); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	for _, pod := range podTemplates(object.Object) {
		if c := containerOf(pod, p.container); c != nil {
			// The program's input ends when this worker's connection does, so that no Job is left behind.
			c["stdin"], c["stdinOnce"] = true, true
		}
	}
	p.identify(object, name)
	return object, nil
}

// streamLabels returns a new name for a Job that stays, and the labels of it and its pod.
func streamLabels(task evaluation.Task, worker string) (name string, marks map[string]string) {
	a, nonce := task.Assignment, uuid.NewString()
	suffix := fmt.Sprintf("-s%d-%s", task.Slot, nonce[:8])
	name = head(strings.ToLower(a.StudyName), maxJobName-len(suffix)) + suffix
	marks = labels(a, worker)
	delete(marks, LabelTrial)
	delete(marks, LabelAttempt)
	marks[LabelJob], marks[LabelNonce], marks[LabelSlot] = name, nonce, strconv.Itoa(task.Slot)
	return name, marks
}

// streamWords returns the ${words} that mean the same for every trial of a slot.
func streamWords(task evaluation.Task) map[string]string {
	all, same := words(task), map[string]string{}
	for _, word := range study.StreamJobWords() {
		same[word] = all[word]
	}
	return same
}

// stream is a Job whose program evaluates one trial after another.
type stream struct {
	*plan
	key  string // what it was made for
	name string
	sub  *subscription
	// used means that it was sent a trial.
	used bool
	// ctx limits all reading of its log; following limits waiting for more output.
	ctx, following context.Context
	cancel, over   context.CancelFunc
	reading        sync.WaitGroup
	sending        sync.WaitGroup

	mu      sync.Mutex
	log     *log        // nil until the program has started
	input   *input      // nil until it is attached
	current *transcript // nil if it is idle
	kept    *attemptLog // of the current trial
	stops   bool        // the program has said that it reads stop lines
}

var _ output = (*stream)(nil)

// newStream returns a Job that is to be created.
func (p *plan) newStream(ctx context.Context, name, key string) *stream {
	st := &stream{plan: p, key: key, name: name, sub: p.hub.subscribe(name, p.container)}
	st.ctx, st.cancel = context.WithCancel(context.WithoutCancel(ctx))
	st.following, st.over = context.WithCancel(st.ctx)
	return st
}

// begin says whose output follows; nil for nobody's.
func (st *stream) begin(t *transcript, kept *attemptLog) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.current, st.kept = t, kept
}

// lives reports whether the program can get another trial.
func (st *stream) lives() bool {
	return st.attached() && judge(st.sub.evidence(time.Now()), st.success, st.failure, st.container).open()
}

// attached reports whether the program's input is connected.
func (st *stream) attached() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.input != nil && st.input.attached()
}

// broken reports whether the connection to the input of a program broke that has ended. The program's end ends the connection
// too, but what the cluster says of its pod can be here first: broken waits for the connection, at most for readPatience.
func (st *stream) broken() bool {
	st.mu.Lock()
	in := st.input
	st.mu.Unlock()
	if in == nil {
		return false
	}
	timer := time.NewTimer(readPatience)
	defer timer.Stop()
	select {
	case <-in.gone:
		return in.err != nil
	case <-timer.C:
		return false
	}
}

// stoppable reports whether the program reads stop lines.
func (st *stream) stoppable() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.stops
}

// program returns the pod whose program has started; nil if there is none yet.
func (st *stream) program(pods []*corev1.Pod) (*corev1.Pod, *corev1.ContainerStatus) {
	for _, p := range pods {
		if s := programStatus(p, st.container); s != nil && (s.State.Running != nil || s.State.Terminated != nil) {
			return p, s
		}
	}
	return nil, nil
}

// observe follows the program's log.
func (st *stream) observe(pods []*corev1.Pod) {
	st.mu.Lock()
	defer st.mu.Unlock()
	p, s := st.program(pods)
	if p == nil || st.log != nil {
		return
	}
	st.log = &log{site: st.site, pod: p.Name, container: s.Name, emit: st.line}
	st.reading.Go(func() { st.log.follow(st.ctx, st.following) })
}

// line handles a line of the program's log.
func (st *stream) line(line []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.stops && bytes.Contains(line, []byte("stoppable")) {
		reports, _ := report.Parse(line) // the transcript complains
		st.stops = streaming.Stoppable(reports)
	}
	if st.current != nil {
		st.kept.write("", line)
		st.current.line(line)
	}
}

// finish waits until the log has been read to its end, for at most patience.
func (st *stream) finish(patience time.Duration) {
	st.over()
	timer := time.AfterFunc(patience, st.cancel)
	defer timer.Stop()
	st.reading.Wait()
}

// unread returns nil: a trial ends by its report, so nothing that counts follows it.
func (st *stream) unread([]*corev1.Pod) error { return nil }

// send brings a line to the program, once it runs. The answer is nil until then. It attaches to
// the program's input if necessary, and again if that fails, for as long as a pod may take to start.
func (st *stream) send(ctx context.Context, pods []*corev1.Pod, line []byte) <-chan error {
	p, s := st.program(pods)
	if p == nil || s.State.Running == nil {
		return nil
	}
	st.used = true
	answer := make(chan error, 1)
	st.sending.Go(func() { answer <- st.bring(ctx, p.Name, s.Name, line) })
	return answer
}

func (st *stream) bring(ctx context.Context, pod, container string, line []byte) error {
	deadline, pause := time.Now().Add(st.options.StartTimeout), backoff.New(minPause, maxPause)
	for {
		st.mu.Lock()
		if st.input == nil {
			st.input = st.options.attach(ctx, st.namespace, pod, container)
		}
		in := st.input
		st.mu.Unlock()
		select {
		case err := <-in.send(line):
			if err == nil {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		in.close()
		st.mu.Lock()
		st.input = nil
		st.mu.Unlock()
		err := in.err
		if err == nil {
			err = errDetached
		}
		if strings.Contains(strings.ToLower(err.Error()), "forbidden") || time.Now().After(deadline) {
			return err
		}
		st.options.Logger.Warn("cannot attach to a program's standard input; retrying", "pod", pod, telemetry.LogError, err)
		if !pause.Wait(ctx) {
			return context.Cause(ctx)
		}
	}
}

// write sends a line to a program that is attached, until ctx ends.
func (st *stream) write(ctx context.Context, line []byte) error {
	st.mu.Lock()
	in := st.input
	st.mu.Unlock()
	if in == nil {
		return errDetached
	}
	select {
	case err := <-in.send(line):
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end closes the program's input, and deletes the Job if its program does not end soon.
func (st *stream) end(ctx context.Context) {
	st.mu.Lock()
	in := st.input
	st.mu.Unlock()
	ended := !judge(st.sub.evidence(time.Now()), st.success, st.failure, st.container).open()
	if in != nil && !ended {
		in.end()
		ended = st.awaitEnd(ctx)
	}
	call := context.WithoutCancel(ctx)
	if ended {
		if err := st.mark(call, st.name, LabelConcluded); err != nil {
			st.options.Logger.Warn("cannot mark a Job as ended", "name", st.name, telemetry.LogError, err)
		}
	} else {
		st.discard(call, st.name)
	}
	st.cancel()
	if in != nil {
		in.close()
	}
	st.sub.close()
	st.reading.Wait()
}

// awaitEnd waits for the Job's end, at most for closeGrace, and reports whether it has come.
func (st *stream) awaitEnd(ctx context.Context) bool {
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	for {
		if !judge(st.sub.evidence(time.Now()), st.success, st.failure, st.container).open() {
			return true
		}
		select {
		case <-st.sub.changed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// discardStream ends the slot's Job. The caller MUST hold the lock.
func (e *evaluator) discardStream(ctx context.Context) {
	st := e.stream
	e.stream = nil
	st.end(ctx)
}

// rest ends the slot's Job when it has had no trial for a while. The caller MUST hold the lock.
func (e *evaluator) rest(ctx context.Context) {
	st := e.stream
	if st == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var idle *time.Timer
	idle = time.AfterFunc(e.runner.options.StreamIdle, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.stream == st && e.idle == idle {
			e.discardStream(ctx)
		}
	})
	e.idle = idle
}

// Close ends the slot's Job that stays, if there is one.
func (e *evaluator) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.idle != nil {
		e.idle.Stop()
	}
	if e.stream != nil {
		e.discardStream(ctx)
	}
	return nil
}
