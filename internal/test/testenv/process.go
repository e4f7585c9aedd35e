package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// readyTimeout limits how long a process may take until it serves.
	readyTimeout = 60 * time.Second
	// stopTimeout limits how long a process may take to end after SIGTERM.
	stopTimeout = 20 * time.Second
	pollEvery   = 10 * time.Millisecond
	// keptLog is how much of a process's output is kept, in bytes.
	keptLog = 64 << 10
)

// Process is a program that a test starts, kills and restarts. It ends with the test,
// even if the test's process is killed. Only the test's own goroutine may call its
// methods.
type Process struct {
	t    testing.TB
	name string
	path string
	args []string
	env  []string
	// ready reports whether the process serves.
	ready func(ctx context.Context) error

	log  tail
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts a program with arguments and additional environment variables, waits
// until ready returns nil (a nil ready does not wait), and kills it at the test's end.
// If the test fails, it logs the end of the program's output.
func Start(t testing.TB, path string, args, env []string, ready func(ctx context.Context) error) *Process {
	t.Helper()
	p := prepare(t, path, args, env, ready)
	p.start()
	p.AwaitReady()
	return p
}

func prepare(t testing.TB, path string, args, env []string, ready func(ctx context.Context) error) *Process {
	p := &Process{t: t, name: path, path: path, args: args, env: env, ready: ready}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the last output of %s %q:\n%s", p.name, p.args, p.Output())
		}
	})
	return p
}

// start starts the process from a thread that lives as long as the process: Linux
// signals a parent's death when the thread that made the child ends.
func (p *Process) start() {
	p.t.Helper()
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(cmd.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.SysProcAttr = dieWithParent()
	done, started := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the test checks how it ended
		}
	}()
	if err := <-started; err != nil {
		p.t.Fatalf("start %s: %v", p.path, err)
	}
	p.cmd, p.done = cmd, done
}

// AwaitReady waits until the process serves and fails the test if it does not.
func (p *Process) AwaitReady() {
	p.t.Helper()
	if p.ready == nil {
		return
	}
	ended := errors.New("the process ended")
	err := poll(p.t.Context(), readyTimeout, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return true, ended
		default:
			return false, p.ready(ctx)
		}
	})
	if err != nil {
		p.t.Fatalf("%s does not serve: %v %s\n%s", p.name, err, p.State(), p.Output())
	}
}

// Eventually calls try until it returns nil, and fails the test after the timeout. Each
// call may take a second.
func Eventually(t testing.TB, timeout time.Duration, try func(ctx context.Context) error) {
	t.Helper()
	err := poll(t.Context(), timeout, func(ctx context.Context) (bool, error) { return false, try(ctx) })
	if err != nil {
		t.Fatal(err)
	}
}

// poll calls try until it returns no error or a final one.
func poll(ctx context.Context, timeout time.Duration, try func(context.Context) (final bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		one, cancel := context.WithTimeout(ctx, time.Second)
		final, err := try(one)
		cancel()
		if final || err == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", timeout, err)
		case <-tick.C:
		}
	}
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// State describes how the process ended; it is empty while it runs.
func (p *Process) State() string {
	select {
	case <-p.done:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// Output returns the end of the process's output.
func (p *Process) Output() string { return p.log.String() }

// Kill kills the process with SIGKILL and waits for its end. A process that has already
// ended is not an error.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.done
}

// Stop asks the process to end with SIGTERM and waits for it.
func (p *Process) Stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.t.Fatalf("%s did not end %s after SIGTERM", p.name, stopTimeout)
	}
}

// Pause stops the process with SIGSTOP, and waits until all of its threads have
// stopped. Its connections stay open and nothing answers. It MUST NOT be paused
// already.
func (p *Process) Pause() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	runs := errors.New("it still runs")
	err := poll(p.t.Context(), stopTimeout, func(context.Context) (bool, error) {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		if err == nil && !status.Stopped() {
			return false, runs
		}
		return !errors.Is(err, syscall.EINTR), err
	})
	if err != nil {
		p.t.Fatalf("%s does not stop: %v", p.name, err)
	}
}

// Resume continues a paused process.
func (p *Process) Resume() {
	p.t.Helper()
	p.signal(syscall.SIGCONT)
}

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("send %s to %s: %v", s, p.name, err)
	}
}

// Restart starts an ended process again, with the same arguments and data, and waits
// until it serves.
func (p *Process) Restart() {
	p.t.Helper()
	p.Relaunch()
	p.AwaitReady()
}

// Relaunch is Restart without waiting for the process to serve.
func (p *Process) Relaunch() {
	p.t.Helper()
	p.Kill()
	p.start()
}

// Path returns the path of the program.
func (p *Process) Path() string { return p.path }

// Replace asks the process to end with SIGTERM, and starts another program in its place, such
// as another version, with the same arguments and data.
func (p *Process) Replace(path string) {
	p.t.Helper()
	p.Stop()
	p.path = path
	p.start()
	p.AwaitReady()
}

// tail keeps the end of the text written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p)
	if n := l.buf.Len() - keptLog; n > 0 {
		l.buf.Next(n)
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// answersOK returns a check that a URL answers with status 200.
func answersOK(url string) func(context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	return func(ctx context.Context) error { return Answers(ctx, client, url) }
}
