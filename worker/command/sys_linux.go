package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// attributes puts a child into its own process group. The kernel kills it when the
// thread that started it ends, so a killed worker leaves no child.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// groupAlive reports whether the process group has a member that is not a zombie: if
// process 1 does not reap, zombies keep a group forever.
func groupAlive(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true
	}
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if member, alive := processGroup(pid); alive && member == group {
			return true
		}
	}
	return false
}

// processGroup returns a process's group; alive is false if it has ended, also for
// zombies.
func processGroup(pid int) (group int, alive bool) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false
	}
	// proc_pid_stat(5): pid (comm) state ppid pgrp …, where comm may hold
	// spaces and parentheses.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 3 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, false
	}
	group, err = strconv.Atoi(string(fields[2]))
	return group, err == nil
}
