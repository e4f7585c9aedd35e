package command

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	// pollGroup is the interval of checks of a stopped child's group once the child
	// itself has ended.
	pollGroup = 20 * time.Millisecond
	// unkillable is the time after a SIGKILL when the child is given up: a process in
	// an uninterruptible system call only ends after the call.
	unkillable = 10 * time.Second
)

// child is a running program, the leader of a process group of its own.
type child struct {
	cmd *exec.Cmd
	// exited is closed once the program has ended and was reaped.
	exited chan struct{}
}

// startChild starts cmd in a new process group. A goroutine keeps the thread that
// started the child until the child ends, as the parent-death signal follows the
// thread.
func startChild(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = attributes()
	c := &child{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		// Wait's result is in cmd.ProcessState.
		_ = cmd.Wait()
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// signal sends to all processes of the group, if any are left.
func (c *child) signal(sig syscall.Signal) {
	_ = syscall.Kill(-c.cmd.Process.Pid, sig)
}

// stop ends the child and its group: first SIGTERM, then SIGKILL for what is left after
// grace or as soon as kill is closed. It returns when the child was reaped.
func (c *child) stop(grace time.Duration, kill <-chan struct{}) {
	c.signal(syscall.SIGTERM)
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	select {
	case <-c.exited:
		c.awaitGroup(deadline.C, kill)
	case <-deadline.C:
	case <-kill:
	}
	c.finish()
}

// awaitGroup gives the rest of the group its share of the grace: the program may be a
// shell that ended while its own child still saves a checkpoint.
func (c *child) awaitGroup(deadline <-chan time.Time, kill <-chan struct{}) {
	poll := time.NewTicker(pollGroup)
	defer poll.Stop()
	for groupAlive(c.cmd.Process.Pid) {
		select {
		case <-poll.C:
		case <-deadline:
			return
		case <-kill:
			return
		}
	}
}

// finish kills what is left of the group and waits for the child.
func (c *child) finish() {
	c.signal(syscall.SIGKILL)
	select {
	case <-c.exited:
	case <-time.After(unkillable):
	}
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
	state := c.cmd.ProcessState
	if state == nil {
		return exit{code: -1}
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit{code: -1, signal: status.Signal()}
	}
	return exit{code: state.ExitCode()}
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
