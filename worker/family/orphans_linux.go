package family

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// orphanPatience is the time for which the ends of a killed worker's processes are awaited.
const orphanPatience = 10 * time.Second

// KillOrphans kills the processes that a killed worker has left behind in its directory, and
// returns their number: a program dies with its worker, but the program's own children do not.
// It spares this process and its ancestors. Only Linux has the information. The caller MUST
// ensure that no other worker uses the directory.
func KillOrphans(worker string) int {
	worker, err := filepath.Abs(worker)
	if err != nil {
		return 0
	}
	killed := killCgroups(ownCgroup(), worker)
	all, err := processes()
	if err != nil {
		return killed
	}
	mark := []byte("\x00" + Variable + "=" + worker + string(filepath.Separator))
	spared := ancestors(all)
	for _, p := range all {
		if !p.ended && !spared[p.pid] && p.marked(mark) && p.signal(syscall.SIGKILL) {
			killed++
		}
	}
	return killed
}

// ancestors returns the ids of this process and of those that it descends from.
func ancestors(all []process) map[int]bool {
	parents := map[int]int{}
	for _, p := range all {
		parents[p.pid] = p.parent
	}
	found := map[int]bool{}
	for pid := os.Getpid(); pid != 0 && !found[pid]; pid = parents[pid] {
		found[pid] = true
	}
	return found
}

// groupAlive reports whether the process group has a member that is not a zombie: if process 1
// does not wait for them, zombies keep a group forever.
func groupAlive(leader int) bool {
	if syscall.Kill(-leader, 0) != nil {
		return false
	}
	all, err := processes()
	if err != nil || len(all) == 0 {
		return true
	}
	return slices.ContainsFunc(all, func(p process) bool { return p.group == leader && !p.ended })
}
