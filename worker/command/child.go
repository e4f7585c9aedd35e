package command

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/fantasia-hpo/fantasia/worker/family"
)

const (
	// pollFamily is the interval of checks of a stopped child's descendants once the child
	// itself has ended.
	pollFamily = 20 * time.Millisecond
	// unkillable is the time after a SIGKILL when processes are given up: one in an
	// uninterruptible system call only ends after the call.
	unkillable = 10 * time.Second
)

// child is a running program, with the processes that descend from it.
type child struct {
	family *family.Family
	// exited is closed once the program has ended and was reaped; status is how.
	exited chan struct{}
	status *syscall.WaitStatus
}

// startChild starts cmd for the trial with a directory, in a worker's directory. A goroutine
// keeps the thread that started the child until the child ends, as the parent-death signal
// follows the thread.
func startChild(cmd *exec.Cmd, worker, trial string) (*child, error) {
	c := &child{exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f, err := family.Start(cmd, worker, trial)
		c.family = f
		started <- err
		if err != nil {
			return
		}
		c.status = f.Wait()
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// stop ends the child and its descendants: first SIGTERM, then SIGKILL for what is left after
// grace or as soon as kill is closed. It returns when all have ended, or cannot be ended.
func (c *child) stop(grace time.Duration, kill <-chan struct{}) error {
	c.family.Signal(syscall.SIGTERM)
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	select {
	case <-c.exited:
		c.awaitFamily(deadline.C, kill)
	case <-deadline.C:
	case <-kill:
	}
	return c.finish()
}

// awaitFamily gives the descendants their share of the grace: the program may be a shell that
// ended while its own child still saves a checkpoint.
func (c *child) awaitFamily(deadline <-chan time.Time, kill <-chan struct{}) {
	poll := time.NewTicker(pollFamily)
	defer poll.Stop()
	for c.family.Alive() {
		select {
		case <-poll.C:
		case <-deadline:
			return
		case <-kill:
			return
		}
	}
}

// finish kills the child if it still runs, and what is left of its descendants. It returns an
// error if some did not end.
func (c *child) finish() error {
	deadline := time.Now().Add(unkillable)
	select {
	case <-c.exited:
	default:
		c.family.Kill()
		select {
		case <-c.exited:
		case <-time.After(unkillable):
		}
	}
	return c.family.Close(deadline)
}

// exit is how a program ended.
type exit struct {
	code   int
	signal syscall.Signal // 0 if it did not end by a signal
	// stuck means that even SIGKILL did not end it.
	stuck bool
}

// exit returns how the child ended. Call it only after stop, finish or exited.
func (c *child) exit() exit {
	select {
	case <-c.exited:
	default:
		return exit{code: -1, stuck: true}
	}
	switch {
	case c.status == nil:
		return exit{code: -1}
	case c.status.Signaled():
		return exit{code: -1, signal: c.status.Signal()}
	default:
		return exit{code: c.status.ExitStatus()}
	}
}

// startMessage explains to people why a program could not be started.
func startMessage(argv []string, dir string, err error) string {
	where := ""
	if dir != "" {
		where = " in " + dir
	}
	hint := ""
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, syscall.ENOENT):
		hint = "; is it installed on this worker and in its PATH?"
	case errors.Is(err, syscall.EACCES):
		hint = "; is it executable (chmod +x)?"
	case errors.Is(err, syscall.ENOEXEC):
		hint = "; does it begin with a line like #!/usr/bin/env python3?"
	case errors.Is(err, syscall.E2BIG):
		hint = "; its arguments and environment are too long"
	}
	return "cannot run " + quoteArgs(argv) + where + ": " + err.Error() + hint
}
