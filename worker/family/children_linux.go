package family

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// sweepInterval is the interval at which adopted processes that have ended are looked for.
	sweepInterval = time.Second
	// unclaimed is the time for which a child that has ended is left alone, unless it is known
	// to be adopted: whoever started a program waits for it sooner.
	unclaimed = 10 * time.Second
	// subreaper is PR_SET_CHILD_SUBREAPER of prctl(2).
	subreaper = 36
)

// children are the children of this process. To adopt is a property of the whole process, so
// all workers in it share them.
var children = &registry{programs: map[int]struct{}{}, ended: map[int]sighting{}}

// registry tells the programs that this process has started from what it has adopted. It is
// safe for concurrent use.
type registry struct {
	once  sync.Once
	adopt bool

	mu sync.Mutex
	// programs are those that os/exec waits for.
	programs map[int]struct{}
	// ended are other children that have ended, and nobody has waited for, by their ids.
	ended map[int]sighting
	swept time.Time
}

// sighting is when a process was first seen to have ended.
type sighting struct {
	start string
	at    time.Time
}

// adopts makes orphans of this process's descendants its children. It reports false where that
// cannot be, as under a filter of system calls.
func (r *registry) adopts() bool {
	r.once.Do(func() {
		_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, subreaper, 1, 0)
		r.adopt = errno == 0
	})
	return r.adopt
}

func (r *registry) add(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs[pid] = struct{}{}
}

func (r *registry) remove(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.programs, pid)
}

// started reports whether a child is a program that this process has started.
func (r *registry) started(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.programs[pid]
	return ok
}

// adopted returns the children that are no programs of families, also those that have ended.
func (r *registry) adopted() []process {
	var found []process
	for _, pid := range childIDs() {
		if r.started(pid) {
			continue
		}
		if p, ok := readProcess(pid); ok {
			found = append(found, p)
		}
	}
	return found
}

// reap waits for one child that has ended. Nobody else waits for adopted ones.
func (r *registry) reap(pid int) {
	_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
}

// sweep waits for adopted processes that have ended, so that they do not fill the table of
// processes. It spares children that some other part of this process may have started and may
// wait for: those that share its process group, and all that have ended only now.
func (r *registry) sweep(now time.Time) {
	r.mu.Lock()
	recent := now.Sub(r.swept) < sweepInterval/2
	if !recent {
		r.swept = now
	}
	r.mu.Unlock()
	if recent {
		return // for another family
	}
	group := syscall.Getpgrp()
	seen := map[int]sighting{}
	for _, p := range r.adopted() {
		if !p.ended || p.group == group {
			continue
		}
		first, ok := r.sighting(p.pid)
		if !ok || first.start != p.start {
			first = sighting{start: p.start, at: now}
		}
		if now.Sub(first.at) >= unclaimed {
			r.reap(p.pid)
			continue
		}
		seen[p.pid] = first
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = seen
}

func (r *registry) sighting(pid int) (sighting, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, ok := r.ended[pid]
	return first, ok
}

// childIDs returns the ids of this process's adopted children and of some others. The kernel
// gives orphans to the first thread of a process. It may leave one out of a list while another
// ends, so the list is read until it is the same twice.
func childIDs() []int {
	path := fmt.Sprintf("/proc/self/task/%d/children", os.Getpid())
	const most = 5
	var last []byte
	for range most {
		text, err := os.ReadFile(path)
		if err != nil { // a kernel without CONFIG_PROC_CHILDREN
			return childrenOf(os.Getpid())
		}
		if last != nil && bytes.Equal(text, last) {
			break
		}
		last = slices.Concat([]byte{}, text)
	}
	var ids []int
	for _, word := range bytes.Fields(last) {
		if pid, err := strconv.Atoi(string(word)); err == nil {
			ids = append(ids, pid)
		}
	}
	return ids
}

// childrenOf looks for a process's children among all processes.
func childrenOf(parent int) []int {
	all, err := processes()
	if err != nil {
		return nil
	}
	var ids []int
	for _, p := range all {
		if p.parent == parent {
			ids = append(ids, p.pid)
		}
	}
	return ids
}
