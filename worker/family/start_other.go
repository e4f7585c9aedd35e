//go:build !linux

package family

import (
	"os/exec"
	"syscall"
)

func start(cmd *exec.Cmd, _, _ string) (*exec.Cmd, members, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return cmd, &group{leader: cmd.Process.Pid}, nil
}

// groupAlive reports whether the process group has a member.
func groupAlive(leader int) bool { return syscall.Kill(-leader, 0) == nil }

// KillOrphans does nothing, as the system does not tell whose child a process was.
func KillOrphans(string) int { return 0 }
