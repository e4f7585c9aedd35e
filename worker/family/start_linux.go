package family

import (
	"os/exec"
	"sync/atomic"
	"syscall"
)

// attributes makes a program the leader of a process group, which the kernel kills when the
// thread that started it ends: a killed worker leaves no program.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// refused is set when the kernel makes cgroups for this process, but starts nothing in them.
var refused atomic.Bool

func start(cmd *exec.Cmd, worker, trial string) (*exec.Cmd, members, error) {
	if refused.Load() {
		return startAdopted(cmd, trial)
	}
	return startIn(ownCgroup(), cmd, worker, trial)
}

// startIn starts a program in a new cgroup below parent if that is possible, and otherwise as
// one whose descendants are adopted.
func startIn(parent string, cmd *exec.Cmd, worker, trial string) (*exec.Cmd, members, error) {
	group := newCgroup(parent, worker)
	if group == nil {
		return startAdopted(cmd, trial)
	}
	inside := again(cmd)
	inside.SysProcAttr.UseCgroupFD, inside.SysProcAttr.CgroupFD = true, int(group.file.Fd())
	err := inside.Start()
	group.started(inside)
	if err == nil {
		return inside, group, nil
	}
	group.remove()
	started, m, err := startAdopted(cmd, trial)
	if err == nil { // so the cgroup was what failed
		refused.Store(true)
	}
	return started, m, err
}

// again returns a command to start; one that has failed to start cannot be started again.
func again(cmd *exec.Cmd) *exec.Cmd {
	return &exec.Cmd{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Err: cmd.Err,
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, SysProcAttr: attributes(),
	}
}
