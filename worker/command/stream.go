package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/family"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
	"github.com/fantasia-hpo/fantasia/worker/report"
	"github.com/fantasia-hpo/fantasia/worker/streaming"
)

// An idle child has closeGrace to end after its stdin is closed, then termGrace after
// SIGTERM.
const (
	closeGrace = 5 * time.Second
	termGrace  = time.Second
)

// atOnce is the time after a trial's line within which a child's death may have nothing
// to do with the trial.
const atOnce = time.Second

// stream is a long-lived child that evaluates one trial after another.
type stream struct {
	key     string // what it was started for
	dir     string // directory of its logs
	child   *child
	capture *capture
	stdin   *os.File
	// stoppable means that the child has said that it reads stop lines.
	stoppable atomic.Bool

	mu      sync.Mutex
	current *session // nil if it is idle
}

// runStream lets the slot's child evaluate one attempt. A child that has evaluated
// others and dies at once may not have read the line, so a new child gets the attempt.
func (e *Evaluator) runStream(ctx context.Context, s *session) (evaluation.Ending, error) {
	line, err := e.request(s)
	if err != nil {
		return evaluation.Ending{}, err
	}
	for {
		fresh, err := e.ensureStream(ctx, s.task.Assignment)
		if err != nil {
			return evaluation.Ending{}, err
		}
		st, sent := e.stream, time.Now()
		share := logfile.Share{Begin: st.capture.ends()}
		e.keep(share, s)
		exited, stopped := e.converse(ctx, s, line)
		share.End = new(st.capture.ends())
		e.keep(share, s)
		if exited != nil && stopped == nil && !s.isEnded() {
			if !fresh && !s.spoke() && time.Since(sent) < atOnce && ctx.Err() == nil {
				continue
			}
			if exited.code == 0 {
				s.addReports([]report.Report{{Error: new("the program ended before it was done with the trial")}}, nil)
			}
		}
		return s.conclude(stopped, exited, st.capture, st.dir), nil
	}
}

// keep notes which part of the child's log is an attempt's.
func (e *Evaluator) keep(share logfile.Share, s *session) {
	if err := share.Keep(e.options.Dir, e.options.Slot, s.task.Assignment.AttemptID); err != nil {
		s.reports.Log.Warn("the log of an attempt will not be found", telemetry.LogError, err)
	}
}

// converse sends the line and waits for the attempt's end. It returns how the child
// ended (nil if it still runs, for the next attempt), and why the attempt was stopped.
func (e *Evaluator) converse(ctx context.Context, s *session, line []byte) (exited *exit, stopped error) {
	st := e.stream
	st.setCurrent(s)
	defer st.setCurrent(nil)
	err := st.send(ctx, line)
	if err == nil {
		select {
		case <-s.ended:
		case <-st.child.exited:
		case <-ctx.Done():
		}
	}
	if s.isEnded() {
		return nil, nil
	}
	patience := termGrace // for a child whose stdin was only closed
	select {
	case <-st.child.exited:
		if stopped = leavingToo(ctx, st.child.exit()); stopped != nil {
			patience = s.task.Assignment.Run.GracePeriod()
		}
	default:
		if stopped = evaluation.Stopped(ctx); stopped != nil {
			if err == nil && st.askToStop(ctx, s, stopped) {
				return nil, stopped
			}
			patience = s.task.Assignment.Run.GracePeriod()
		}
	}
	e.unended(st.child.stop(patience, s.task.Kill))
	e.discard()
	how := st.child.exit()
	return &how, stopped
}

// send writes to the child, which may be dead or not reading, until ctx ends.
func (st *stream) send(ctx context.Context, line []byte) error {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = st.stdin.SetWriteDeadline(time.Now()) // pipes have deadlines
	})
	_, err := st.stdin.Write(line)
	if !stop() {
		<-interrupted
		err = errors.Join(err, st.stdin.SetWriteDeadline(time.Time{}))
	}
	return err
}

// request returns the line for an attempt, and makes the trial's folder.
func (e *Evaluator) request(s *session) ([]byte, error) {
	checkpoints := e.checkpoints(s.task.Assignment)
	if err := os.MkdirAll(checkpoints, 0o700); err != nil {
		return nil, fmt.Errorf("make the trial's folder: %w", err)
	}
	return streaming.Line(s.task, checkpoints)
}

// discard drops a child that has ended.
func (e *Evaluator) discard() {
	st := e.stream
	e.stream = nil
	_ = st.stdin.Close() // nothing reads it
	if err := st.capture.finish(); err != nil {
		e.options.Logger.Warn("a log is incomplete", telemetry.LogError, err)
	}
}

// ensureStream starts a child for the assignment's study unless one is running, and
// reports whether it did.
func (e *Evaluator) ensureStream(ctx context.Context, a *messaging.Assignment) (fresh bool, err error) {
	key, err := json.Marshal(struct {
		Study string
		Run   study.TrialTemplate
	}{a.Study, a.Run})
	if err != nil {
		return false, fmt.Errorf("compare programs: %w", err)
	}
	if e.stream != nil {
		select {
		case <-e.stream.child.exited: // it ended while idle
			e.unended(e.stream.child.finish())
			e.discard()
		default:
			if e.stream.key == string(key) {
				return false, nil
			}
			if err := e.Close(ctx); err != nil {
				return false, err
			}
		}
	}
	e.stream, err = e.startStream(a, string(key))
	return true, err
}

func (e *Evaluator) startStream(a *messaging.Assignment, key string) (*stream, error) {
	st := &stream{key: key, dir: filepath.Join(e.options.Dir, logfile.StreamDir(a.Study, e.options.Slot))}
	if err := os.MkdirAll(st.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the program's folder: %w", err)
	}
	argv, err := study.ExpandCommand(e.template(a), nil, nil, "")
	if err != nil {
		return nil, err
	}
	cmd, err := e.newCommand(a, argv)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(e.base(a), family.Variable+"="+st.dir)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	cmd.Stdin, st.stdin = r, w
	st.child, st.capture, err = e.launch(cmd, st.dir, st.line)
	_ = r.Close() // the child has its own
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return st, nil
}

func (st *stream) setCurrent(s *session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.current = s
}

// line handles a line of output. Reports count if they are tagged with the current
// trial, matches of the pattern while a trial runs.
func (st *stream) line(line report.Line, from messaging.LogStream) {
	st.mu.Lock()
	s := st.current
	st.mu.Unlock()
	if s != nil {
		s.match(line, from)
	}
	if from == messaging.LogStderr {
		return
	}
	reports, err := line.Read(string(from), report.Parse)
	if streaming.Stoppable(reports) {
		st.stoppable.Store(true)
	}
	if s != nil {
		s.addReports(streaming.Own(s.task.Assignment, reports, err))
	}
}

// Close ends an idle child: it closes the child's stdin and, if the child does not end
// by itself, stops it.
func (e *Evaluator) Close(ctx context.Context) error {
	if e.stream == nil {
		return nil
	}
	st := e.stream
	_ = st.stdin.Close() // it is not used any more
	select {
	case <-st.child.exited:
		e.unended(st.child.finish())
	case <-time.After(closeGrace):
		e.unended(st.child.stop(termGrace, ctx.Done()))
	case <-ctx.Done():
		e.unended(st.child.stop(termGrace, nil))
	}
	e.discard()
	return nil
}
