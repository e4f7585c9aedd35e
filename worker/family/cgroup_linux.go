package family

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// cgroup holds a family in a cgroup (version 2) of its own, which no member can leave without
// the right to write to other cgroups.
type cgroup struct {
	dir    string
	file   *os.File // the open directory, until the program was started
	leader int      // of the process group
}

var _ members = (*cgroup)(nil)

// ownCgroup returns the directory of this process's cgroup, "" if it is not visible.
var ownCgroup = sync.OnceValue(func() string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return cgroupDir(string(groups), string(mounts))
})

// cgroupDir finds the directory of a cgroup in the texts of /proc/self/cgroup and
// /proc/self/mountinfo (cgroups(7), proc_pid_mountinfo(5)).
func cgroupDir(groups, mounts string) string {
	own := ""
	for line := range strings.Lines(groups) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own = path
		}
	}
	if !strings.HasPrefix(own, "/") || strings.HasPrefix(own, "/..") { // none, or outside of what is visible
		return ""
	}
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !ok || !strings.HasPrefix(after, "cgroup2 ") || len(fields) < 5 {
			continue
		}
		root, at := unescape(fields[3]), unescape(fields[4])
		below, err := filepath.Rel(root, own)
		if err != nil || !filepath.IsLocal(below) { // a part of the tree without this cgroup
			continue
		}
		return filepath.Join(at, below)
	}
	return ""
}

// unescape replaces the octal codes of mountinfo, as in "\040" for a space.
func unescape(path string) string {
	text, rest := "", path
	for {
		before, after, ok := strings.Cut(rest, `\`)
		text += before
		if !ok {
			return text
		}
		if code, err := strconv.ParseUint(after[:min(3, len(after))], 8, 8); err == nil {
			text, rest = text+string([]byte{byte(code)}), after[3:]
		} else {
			text, rest = text+`\`, after
		}
	}
}

// groupPrefix begins the names of the cgroups of a worker's programs.
func groupPrefix(worker string) string {
	sum := sha256.Sum256([]byte(worker))
	return "fantasia-" + hex.EncodeToString(sum[:6]) + "-"
}

// groups numbers the cgroups that this process makes.
var groups atomic.Uint64

// newCgroup makes a cgroup below parent, or returns nil where that is not possible: without
// cgroups of version 2, without the right to make one, or on a kernel before 5.14, which cannot
// kill one.
func newCgroup(parent, worker string) *cgroup {
	if parent == "" {
		return nil
	}
	const tries = 3 // a killed worker with the same process id may have left a name
	for range tries {
		dir := filepath.Join(parent, fmt.Sprintf("%s%d-%d", groupPrefix(worker), os.Getpid(), groups.Add(1)))
		err := os.Mkdir(dir, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil
		}
		g := &cgroup{dir: dir}
		if _, err = os.Stat(g.path("cgroup.kill")); err == nil {
			g.file, err = os.Open(dir)
		}
		if err != nil {
			g.remove()
			return nil
		}
		return g
	}
	return nil
}

func (g *cgroup) path(file string) string { return filepath.Join(g.dir, file) }

// started notes the program that was started in the cgroup, or was not.
func (g *cgroup) started(cmd *exec.Cmd) {
	_ = g.file.Close() // only read
	if cmd.Process != nil {
		g.leader = cmd.Process.Pid
	}
}

func (g *cgroup) reaped() {}

// signal sends to the process group at once, and then to each process outside of it.
func (g *cgroup) signal(sig syscall.Signal) {
	_ = syscall.Kill(-g.leader, sig)
	for _, p := range g.processes() {
		if p.group != g.leader {
			p.signal(sig)
		}
	}
}

// processes returns the living members, also those in cgroups that members have made.
func (g *cgroup) processes() []process {
	var found []process
	for _, dir := range g.tree() {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue // it was removed
		}
		for _, word := range bytes.Fields(text) {
			pid, err := strconv.Atoi(string(word))
			if err != nil {
				continue
			}
			if p, ok := readProcess(pid); ok && !p.ended && g.holds(p) {
				found = append(found, p)
			}
		}
	}
	return found
}

// holds reports whether a process is still in the cgroup: its id may have become another's.
func (g *cgroup) holds(p process) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "cgroup"))
	return err == nil && bytes.Contains(text, []byte("/"+filepath.Base(g.dir)))
}

// tree returns the cgroup's directory and those below it, each after the one that holds it.
func (g *cgroup) tree() []string {
	var dirs []string
	_ = filepath.WalkDir(g.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // what cannot be read was removed
	})
	return dirs
}

// alive reports whether the cgroup has processes. The kernel does not count those that have
// ended, even if nobody has waited for them.
func (g *cgroup) alive() bool {
	events, err := os.ReadFile(g.path("cgroup.events"))
	return err == nil && bytes.Contains(events, []byte("populated 1"))
}

// kill ends all members, and what they start meanwhile.
func (g *cgroup) kill() {
	if os.WriteFile(g.path("cgroup.kill"), []byte("1"), 0) != nil {
		g.signal(syscall.SIGKILL)
	}
}

// close kills what is left, and removes the cgroup. One that has no processes and still cannot
// be removed stays until the next start.
func (g *cgroup) close(deadline time.Time) error {
	for killed := false; !g.remove(); killed = true {
		if !killed {
			g.kill()
		}
		if time.Now().After(deadline) {
			return leftover(g.processes())
		}
		time.Sleep(poll)
	}
	return nil
}

// remove removes the cgroup, and those below it, if they are empty, and reports whether it did.
func (g *cgroup) remove() bool {
	if g.file != nil {
		_ = g.file.Close() // only read; a second time does nothing
	}
	if err := syscall.Rmdir(g.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	dirs := g.tree()
	var err error
	for i := range dirs {
		err = syscall.Rmdir(dirs[len(dirs)-1-i])
	}
	return err == nil
}

// killCgroups ends what a killed worker has left in its cgroups, and returns the number of
// processes.
func killCgroups(parent, worker string) int {
	if parent == "" {
		return 0
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return 0
	}
	killed := 0
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), groupPrefix(worker)) {
			continue
		}
		g := &cgroup{dir: filepath.Join(parent, entry.Name())}
		killed += len(g.processes())
		_ = g.close(time.Now().Add(orphanPatience)) // another start tries again
	}
	return killed
}
