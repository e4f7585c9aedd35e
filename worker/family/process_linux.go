package family

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// process is a process of this machine, as /proc showed it.
type process struct {
	pid, parent, group, session int
	// start tells it from an earlier process with the same id.
	start string
	// ended means that it is a zombie: its parent has not waited for it.
	ended bool
}

// readProcess returns a process; ok is false if there is none with that id.
func readProcess(pid int) (p process, ok bool) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return p, false
	}
	return parseStat(pid, data)
}

// parseStat reads the text of /proc/PID/stat: pid (comm) state ppid pgrp session …, where comm
// may hold spaces and parentheses (proc_pid_stat(5)).
func parseStat(pid int, data []byte) (p process, ok bool) {
	const state, parent, group, session, start = 0, 1, 2, 3, 19 // after comm
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= start {
		return p, false
	}
	p = process{pid: pid, start: string(fields[start]), ended: fields[state][0] == 'Z' || fields[state][0] == 'X'}
	for _, field := range []struct {
		to *int
		at int
	}{{&p.parent, parent}, {&p.group, group}, {&p.session, session}} {
		number, err := strconv.Atoi(string(fields[field.at]))
		if err != nil {
			return p, false
		}
		*field.to = number
	}
	return p, true
}

// processes returns all processes, also those that have ended.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// signal sends to this process, and to no later one with the same id: the process that was
// found holds a pidfd, where the kernel has them, from before the comparison.
func (p process) signal(sig syscall.Signal) bool {
	found, err := os.FindProcess(p.pid)
	if err != nil {
		return false
	}
	defer func() { _ = found.Release() }()
	if now, ok := readProcess(p.pid); !ok || now.start != p.start || now.ended {
		return false
	}
	return found.Signal(sig) == nil
}

// marked reports whether a process was started with an entry in its environment. The entry
// begins with the byte that ends the one before. That fails for processes of other users.
func (p process) marked(entry []byte) bool {
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, environ...), entry)
}

// leftover is the error of processes that did not end; nil if there are none.
func leftover(left []process) error {
	if len(left) == 0 {
		return nil
	}
	ids := make([]int, len(left))
	for i, p := range left {
		ids[i] = p.pid
	}
	return fmt.Errorf("processes of the program did not end even when killed: %v", ids)
}
