// Package family starts a program so that it can be ended together with every process that
// descends from it, also with those that have left its process group.
//
// On Linux a program gets a cgroup of its own where this process may make one. Where it may
// not, this process adopts what loses its parent (PR_SET_CHILD_SUBREAPER), and tells by a
// variable of the environment to which program an adopted process belongs. Other systems only
// have the process group.
package family

import (
	"os/exec"
	"syscall"
	"time"
)

// Variable is the variable of the environment that tells programs apart.
const Variable = "FANTASIA_TRIAL_DIR"

// poll is the interval at which the processes of a killed family are looked for.
const poll = 5 * time.Millisecond

// Family is a program, and every process that descends from it. Its methods MUST NOT be called
// concurrently, except for Wait, which another goroutine may call.
type Family struct {
	cmd     *exec.Cmd
	members members
}

// members are the processes of a family, told apart by the means that the system has.
type members interface {
	// signal sends to every living member, and kill ends them all.
	signal(sig syscall.Signal)
	kill()
	// alive reports whether any member has not ended.
	alive() bool
	// reaped is called when the program has been waited for.
	reaped()
	// close kills what is left, and returns an error if something has not ended by the
	// deadline.
	close(deadline time.Time) error
}

// Start starts cmd as the leader of a process group, which the kernel kills when the calling
// thread ends (on Linux). The caller MUST lock that thread until Wait returns, set Variable to
// trial in the environment of cmd, and call Wait and Close. No two families that run at once
// have the same trial. worker is the directory by which KillOrphans finds the family after
// this process was killed.
func Start(cmd *exec.Cmd, worker, trial string) (*Family, error) {
	started, m, err := start(cmd, worker, trial)
	if err != nil {
		return nil, err
	}
	return &Family{cmd: started, members: m}, nil
}

// Wait waits until the program itself has ended, and returns how it did; nil if the system
// does not tell.
func (f *Family) Wait() *syscall.WaitStatus {
	_ = f.cmd.Wait() // an exit status other than 0 is an error too
	f.members.reaped()
	if f.cmd.ProcessState == nil {
		return nil
	}
	status, ok := f.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		return nil
	}
	return &status
}

// Signal sends to every process of the family.
func (f *Family) Signal(sig syscall.Signal) { f.members.signal(sig) }

// Alive reports whether any process of the family has not ended. Processes that have ended and
// that nobody waits for do not count.
func (f *Family) Alive() bool { return f.members.alive() }

// Kill ends all processes of the family, and does not wait for their ends.
func (f *Family) Kill() { f.members.kill() }

// Close kills what is left of the family after its program has ended. It returns an error if
// some process has not ended by the deadline, as one in an uninterruptible system call.
func (f *Family) Close(deadline time.Time) error { return f.members.close(deadline) }

// group reaches a family by the process group of its program alone.
type group struct{ leader int }

var _ members = (*group)(nil)

func (g *group) signal(sig syscall.Signal) { _ = syscall.Kill(-g.leader, sig) }

func (g *group) kill() { g.signal(syscall.SIGKILL) }

func (g *group) alive() bool { return groupAlive(g.leader) }

func (g *group) reaped() {}

func (g *group) close(time.Time) error {
	g.kill()
	return nil
}
