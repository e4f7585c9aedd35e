package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// KillOrphans kills the processes that a killed worker has left behind in dir (its
// Options.Dir) and returns their number: a child dies with its worker, but the child's
// own children do not. It spares processes that lead a group or have a living leader,
// as they were detached on purpose. Only Linux has the information. The caller MUST
// ensure that no other worker uses dir.
func KillOrphans(dir string) int {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0
	}
	mark := []byte("\x00" + prefix + "TRIAL_DIR=" + dir + string(filepath.Separator))
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return 0
	}
	killed := 0
	for _, path := range paths {
		environ, err := os.ReadFile(path) // fails for processes of other users
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		group, alive := processGroup(pid)
		if !alive {
			continue
		}
		if _, led := processGroup(group); led {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
