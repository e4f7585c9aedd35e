package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
	"github.com/fantasia-hpo/fantasia/worker/report/tfevent"
)

// samePatience is how long after its program a worker may learn of a signal that both got.
const samePatience = 2 * time.Second

// runProcess runs one child for one attempt.
func (e *Evaluator) runProcess(ctx context.Context, s *session) (evaluation.Ending, error) {
	a := s.task.Assignment
	parameters, object, err := parametersOf(a)
	if err != nil {
		return evaluation.Ending{}, err
	}
	at, err := e.newPlace(a, object)
	if err != nil {
		return evaluation.Ending{}, err
	}
	argv, err := e.argv(a, at.parameters)
	if err != nil {
		return evaluation.Ending{}, err
	}
	cmd, err := e.newCommand(a, argv)
	if err != nil {
		return evaluation.Ending{}, err
	}
	cmd.Env = append(append(e.base(a), parameters...), attemptEnv(a, at, s.task.Trace)...)
	child, capture, err := e.launch(cmd, at.dir, s.line)
	if err != nil {
		return evaluation.Ending{}, err
	}
	finishReports := follow(ctx, at, s)
	stopped := e.supervise(ctx, child, s)
	if err := capture.finish(); err != nil {
		s.reports.Log.Warn("a log is incomplete", telemetry.LogError, err)
	}
	finishReports()
	exited := child.exit()
	return s.conclude(stopped, &exited, capture, at.dir), nil
}

// supervise waits for the child's end, and ends the child if ctx or a report requires
// it. It returns ctx's cause if that came first.
func (e *Evaluator) supervise(ctx context.Context, c *child, s *session) (stopped error) {
	select {
	case <-c.exited:
	case <-s.ended:
	case <-ctx.Done():
	}
	select {
	case <-c.exited: // takes precedence over what came at the same time
		if stopped = leavingToo(ctx, c.exit()); stopped != nil {
			break
		}
		e.unended(c.finish())
		return nil
	default:
	}
	if stopped == nil && !s.isEnded() {
		stopped = evaluation.Stopped(ctx)
	}
	e.unended(c.stop(s.task.Assignment.Run.GracePeriod(), s.task.Kill))
	return stopped
}

// leavingToo returns why the attempt is stopped if a program has ended by a SIGTERM that was meant for
// the worker too: Slurm, systemd and others send theirs to all processes of a job, and the
// program can be the first to end.
func leavingToo(ctx context.Context, how exit) error {
	const reported = 128 + int(syscall.SIGTERM) // as shells say that a program has ended by it
	if how.signal != syscall.SIGTERM && how.code != reported {
		return nil
	}
	timer := time.NewTimer(samePatience)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return evaluation.Stopped(ctx)
	case <-timer.C:
		return nil
	}
}

// unended warns of processes that did not end.
func (e *Evaluator) unended(err error) {
	if err != nil {
		e.options.Logger.Warn("a trial has ended, but not all of its processes", telemetry.LogError, err)
	}
}

// follow reads the report file, and the files of metrics.file and metrics.events, until the caller calls
// finish, which reads the rest.
func follow(ctx context.Context, at place, s *session) (finish func()) {
	t := report.NewTail(at.report, func(line report.Line) { s.addReports(line.Read("the report file", report.Parse)) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { t.Follow(ctx) })
	events := s.events(at.dir)
	if events != nil {
		running.Go(func() { events.Follow(ctx) })
	}
	file := s.file(at.dir)
	if file != nil {
		running.Go(func() { file.Follow(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
		t.Finish()
		if file != nil {
			if err := file.Finish(); err != nil {
				s.complain("no metrics.file: " + err.Error())
			}
		}
		if events == nil {
			return
		}
		if err := events.Finish(); err != nil {
			s.complain("no metrics.events: " + err.Error())
		}
	}
}

// events returns the folder of metrics.events of a trial with that directory; nil if there is none.
func (s *session) events(dir string) *tfevent.Folder {
	a := s.task.Assignment
	if m := a.Run.Metrics; m != nil && m.Events != "" {
		return tfevent.NewFolder(filepath.Join(dir, m.Events), a.MetricNames(), s.addReports)
	}
	return nil
}

// file returns the reader of metrics.file of a trial with that directory; nil if there is none.
func (s *session) file(dir string) *report.File {
	m := s.task.Assignment.Run.Metrics
	if m == nil || m.File == "" {
		return nil
	}
	path := filepath.Join(dir, m.File)
	open := func() (*os.File, error) {
		if !filepath.IsLocal(m.File) {
			return nil, fmt.Errorf("%q is not below the trial's folder", m.File)
		}
		file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s does not exist (the program finds its folder in FANTASIA_TRIAL_DIR)", path)
		}
		return file, err
	}
	return report.NewFile(path, open, func(r report.Report) { s.addReports([]report.Report{r}, nil) }, s.warn)
}
