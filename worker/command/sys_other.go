//go:build !linux

package command

import "syscall"

// attributes puts a child into its own process group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// groupAlive reports whether the process group has a member.
func groupAlive(group int) bool { return syscall.Kill(-group, 0) == nil }

// KillOrphans does nothing, as the system does not tell whose child a process was.
func KillOrphans(string) int { return 0 }
