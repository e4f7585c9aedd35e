package kubejob

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

const (
	// maxLine is how much of a line is read: more than is searched for reports, with its stamp.
	maxLine = report.MaxLine + 64
	// maxFollowed is the largest number of logs of one attempt that are followed.
	maxFollowed = 16
	// minReopen and maxReopen limit the pauses before a log is reopened.
	minReopen = time.Second
	maxReopen = 8 * time.Second
	// stampSize is the least length of a time stamp.
	stampSize = len("2006-01-02T15:04:05Z")
)

// followers read the logs of one attempt's containers. One goroutine uses them.
type followers struct {
	plan *plan
	t    *transcript
	kept *attemptLog
	// programs is the number of followed logs of the program.
	programs int
	// ctx limits all reading; following limits waiting for more output.
	ctx, following context.Context
	cancel, over   context.CancelFunc
	running        sync.WaitGroup
	known          map[logID]*log
}

// logID names a container's log.
type logID struct {
	pod       types.UID
	container string
}

func (p *plan) newFollowers(ctx context.Context, t *transcript) *followers {
	f := &followers{plan: p, t: t, kept: newAttemptLog(p.options.StateDir, t.task.Assignment.AttemptID, p.options.Logger),
		known: map[logID]*log{}}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.following, f.over = context.WithCancel(f.ctx)
	return f
}

// observe follows the logs of containers that have one.
func (f *followers) observe(pods []*corev1.Pod) {
	for _, p := range pods {
		if f.plan.reporter != "" && p.Labels[LabelReports] != "true" {
			continue
		}
		if s := programStatus(p, f.plan.container); s != nil {
			f.kept.open()
			if f.follow(p, s, f.keep(p.Name)) {
				f.programs++
			}
		}
		for i := range p.Status.InitContainerStatuses {
			if s := &p.Status.InitContainerStatuses[i]; s.Name == sidecarName {
				f.follow(p, s, f.t.sidecarLine)
			}
		}
	}
}

// keep returns what handles the lines of a pod's program, which are kept as well. If an
// attempt has several pods, the lines of all but the first begin with their pod's name.
func (f *followers) keep(pod string) func(line []byte) {
	prefix := ""
	if f.programs > 0 {
		prefix = pod + ": "
	}
	return func(line []byte) {
		f.kept.write(prefix, line)
		f.t.line(line)
	}
}

// follow follows a container's log, unless it is followed already, and reports whether
// it has begun to.
func (f *followers) follow(p *corev1.Pod, s *corev1.ContainerStatus, emit func(line []byte)) bool {
	id := logID{p.UID, s.Name}
	if f.known[id] != nil || len(f.known) >= maxFollowed || s.State.Running == nil && s.State.Terminated == nil {
		return false
	}
	l := &log{site: f.plan.site, pod: p.Name, container: s.Name, emit: emit}
	f.known[id] = l
	f.running.Go(func() { l.follow(f.ctx, f.following) })
	return true
}

// finish waits until every log has been read to its end, for at most patience.
func (f *followers) finish(patience time.Duration) {
	f.over()
	timer := time.AfterFunc(patience, f.cancel)
	defer timer.Stop()
	f.running.Wait()
	f.cancel()
	f.kept.close(f.t.lastLines())
}

// unread returns the error of a log that was not read to its end, after finish. Pods
// that failed, or that were deleted before they succeeded, do not count: they were
// replaced or no longer needed.
func (f *followers) unread(pods []*corev1.Pod) error {
	for _, p := range pods {
		for id, l := range f.known {
			if id.pod != p.UID || l.whole {
				continue
			}
			if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodRunning && !apierrors.IsNotFound(l.err) {
				return fmt.Errorf("the log of container %s of pod %s could not be read to its end: %w", l.container, l.pod, cmp.Or(l.err, errStalled))
			}
		}
	}
	return nil
}

// errStalled means that the time ran out while a log was being read.
var errStalled = errors.New("the cluster's API sends nothing")

// log follows the log of one container.
type log struct {
	site           *site
	pod, container string
	emit           func(line []byte)
	last           string // the stamp of the last line
	same           int    // how many lines had it
	// whole means that a reading which began after the container's end reached the
	// log's end. An earlier end may be that of a connection.
	whole bool
	err   error // why the last reading failed, or nil
}

// follow reads to the log's end. It reopens a broken connection where it was. When
// following ends, it reads once more what is there.
func (l *log) follow(ctx, following context.Context) {
	over, pause := false, backoff.New(minReopen, maxReopen) // over: nothing more will be written, or is needed
	for ctx.Err() == nil {
		if following.Err() != nil {
			over, following = true, ctx
		}
		err := l.readOnce(following, !over)
		if over && err == nil {
			l.whole, l.err = true, nil
			return
		}
		if following.Err() != nil {
			continue
		}
		ended, asked := l.ended(ctx)
		if ctx.Err() != nil {
			return
		}
		if l.failed(cmp.Or(asked, err)); apierrors.IsNotFound(asked) {
			return // the pod is gone together with its log
		}
		over = over || ended
		switch {
		case err != nil:
			pause.Wait(following)
		case !over:
			backoff.Sleep(following, minReopen)
			pause.Reset()
		}
	}
}

// failed records why a reading failed, and logs it unless the previous one failed too.
func (l *log) failed(err error) {
	if err != nil && l.err == nil {
		l.site.options.Logger.Warn("cannot read a log", "pod", l.pod, "container", l.container, telemetry.LogError, err)
	}
	l.err = err
}

// readOnce reads the log once, from where the last reading ended. With follow, it waits for
// more until the container has ended.
func (l *log) readOnce(ctx context.Context, follow bool) error {
	o := &corev1.PodLogOptions{Container: l.container, Follow: follow, Timestamps: true}
	if at, err := time.Parse(time.RFC3339Nano, l.last); err == nil {
		o.SinceTime = new(metav1.NewTime(at)) // rounded down to a second
	}
	stream, err := l.site.options.Core.Logs(ctx, l.site.namespace, l.pod, o)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // opened for reading only
	return l.lines(stream, !follow)
}

// ended reports whether the log's container has ended.
func (l *log) ended(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p, err := l.site.options.Core.Pod(ctx, l.site.namespace, l.pod)
	if err != nil {
		return false, err
	}
	for _, s := range statuses(p) {
		if s.Name == l.container {
			return s.State.Running == nil, nil
		}
	}
	return true, nil
}

// lines emits every line after the last one. An unterminated line may be incomplete,
// unless the container has ended.
func (l *log) lines(stream io.Reader, ended bool) error {
	skip := newSkipper(l.last, l.same)
	reader := bufio.NewReaderSize(stream, 32<<10)
	for {
		line, err := readLine(reader)
		if len(line) > 0 && (err == nil || errors.Is(err, io.EOF) && ended) {
			stamp, text := splitStamp(line)
			if !skip.skips(stamp) {
				l.note(stamp)
				l.emitAll(text)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// note remembers where the reading is.
func (l *log) note(stamp string) {
	switch stamp {
	case "": // not written by the container
	case l.last:
		l.same++
	default:
		l.last, l.same = stamp, 1
	}
}

// emitAll emits a line; carriage returns, which progress bars write, end lines too.
func (l *log) emitAll(text []byte) {
	for part := range bytes.SplitSeq(text, []byte("\r")) {
		if len(part) > 0 {
			l.emit(part)
		}
	}
}

// readLine reads a line without its end, and returns the beginning of one that is too long.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLine-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

// splitStamp splits a log line after its timestamp, which is empty if there is none.
func splitStamp(line []byte) (stamp string, text []byte) {
	before, after, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(before) < stampSize {
		return "", line
	}
	if _, err := time.Parse(time.RFC3339Nano, string(before)); err != nil {
		return "", line
	}
	return string(before), after
}

// skipper skips the lines of a log that were read before: those up to a timestamp,
// several of which may have that timestamp.
type skipper struct {
	until time.Time
	same  int
	done  bool
}

func newSkipper(last string, same int) *skipper {
	until, err := time.Parse(time.RFC3339Nano, last)
	return &skipper{until: until, same: same, done: err != nil}
}

func (s *skipper) skips(stamp string) bool {
	if s.done {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, stamp)
	switch {
	case err != nil: // not written by the container
		return false
	case at.Before(s.until):
		return true
	case at.Equal(s.until) && s.same > 0:
		s.same--
		return true
	}
	s.done = true
	return false
}
