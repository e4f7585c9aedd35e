package family

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// supervisor makes the test binary start a family in the directory of its value, and wait.
const supervisor = "FAMILY_TEST_SUPERVISOR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(supervisor); dir != "" {
		cmd := exec.Command("/bin/sh", "-c", os.Args[1])
		cmd.Env = append(os.Environ(), Variable+"="+filepath.Join(dir, "trial"))
		f, err := Start(cmd, dir, filepath.Join(dir, "trial"))
		if err != nil {
			panic(err)
		}
		f.Wait()
		return
	}
	if _, err := exec.LookPath("setsid"); err != nil { // the scripts would wait for ever
		panic("the tests need setsid, which is a part of util-linux: " + err.Error())
	}
	goleak.VerifyTestMain(m)
}

// eachWay runs a test with every means of telling a family. It skips cgroups only where this
// process may not make one that can be killed.
func eachWay(t *testing.T, test func(t *testing.T, w *way)) {
	for _, name := range []string{"cgroup", "adopted"} {
		t.Run(name, func(t *testing.T) {
			w := &way{dir: t.TempDir()}
			if name == "cgroup" {
				w.parent = cgroupParent(t)
			}
			test(t, w)
		})
	}
}

// cgroupParent returns the directory in which cgroups can be made; the test is skipped where
// none can.
func cgroupParent(t *testing.T) string {
	t.Helper()
	probe := newCgroup(ownCgroup(), t.TempDir())
	if probe == nil {
		t.Skipf("the kernel lets this process make no cgroup in %q that can be killed", ownCgroup())
	}
	probe.remove()
	return ownCgroup()
}

// way is a means of telling a family, with a directory for files.
type way struct{ parent, dir string }

// start starts a shell script as the program of a trial. The script writes ids of processes to
// files of w.dir, where it begins.
func (w *way) start(t *testing.T, trial, script string) (*Family, <-chan *syscall.WaitStatus) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), Variable+"="+trial)
	started, m, err := startIn(w.parent, cmd, w.dir, trial)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.(*cgroup); ok != (w.parent != "") {
		t.Fatalf("started as %T below %q", m, w.parent)
	}
	f := &Family{cmd: started, members: m}
	ended := make(chan *syscall.WaitStatus, 1)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		ended <- f.Wait()
	}()
	t.Cleanup(func() {
		f.Kill()
		<-waited
	})
	return f, ended
}

func closeFamily(t *testing.T, f *Family) {
	t.Helper()
	if err := f.Close(time.Now().Add(10 * time.Second)); err != nil {
		t.Error(err)
	}
	if c, ok := f.members.(*cgroup); ok {
		if _, err := os.Stat(c.dir); err == nil {
			t.Errorf("%s is still there", c.dir)
		}
	}
}

// id waits for a file with the id of a process, and checks that it runs.
func (w *way) id(t *testing.T, file string) int {
	t.Helper()
	pid := 0
	eventually(t, file+" is written", func() bool {
		text, _ := os.ReadFile(filepath.Join(w.dir, file))
		if !strings.HasSuffix(string(text), "\n") {
			return false
		}
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	return pid
}

func running(pid int) bool {
	p, ok := readProcess(pid)
	return ok && !p.ended
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it does not come that %s", what)
		}
	}
}

// escapes are ways for a process to leave its program. Each script waits until the process
// that it names in the file "pid" runs.
var escapes = map[string]string{
	"a session of its own":     `setsid sh -c 'echo $$ > pid; exec sleep 60' & ` + untilPID,
	"a daemon, forked twice":   `(setsid sh -c 'sh -c "echo \$\$ > pid; exec sleep 60" & exit' &); ` + untilPID,
	"its parent has ended":     `sh -c '(echo start; exec setsid sh -c "echo \$\$ > pid; exec sleep 60") & exit' > /dev/null; ` + untilPID,
	"in another process group": `set -m; (sh -c 'echo $$ > pid; exec sleep 60' &); ` + untilPID,
	"it ignores signals":       `setsid sh -c 'trap "" TERM HUP INT; echo $$ > pid; while :; do sleep 1; done' & ` + untilPID,
}

const untilPID = `while ! test -s pid; do sleep 0.01; done; `

func TestNothingOutlivesItsFamily(t *testing.T) {
	for name, script := range escapes {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, w *way) {
				f, ended := w.start(t, "a", script+"exit 3")
				if status := <-ended; status.ExitStatus() != 3 {
					t.Errorf("exit status %d, want 3", status.ExitStatus())
				}
				pid := w.id(t, "pid")
				if !running(pid) || !f.Alive() {
					t.Fatalf("process %d runs %v, the family is alive %v; want both after the program's end", pid, running(pid), f.Alive())
				}
				closeFamily(t, f)
				if running(pid) {
					t.Errorf("process %d still runs", pid)
				}
			})
		})
	}
}

// A process without the variable, in a session of its own, whose parent has ended.
func TestClearedEnvironment(t *testing.T) {
	const script = `(setsid env -i sh -c 'echo $$ > pid; exec sleep 60' &); ` + untilPID
	t.Run("cgroup", func(t *testing.T) {
		w := &way{dir: t.TempDir(), parent: cgroupParent(t)}
		f, ended := w.start(t, "a", script)
		<-ended
		pid := w.id(t, "pid")
		closeFamily(t, f)
		if running(pid) {
			t.Errorf("process %d still runs", pid)
		}
	})
	// Without a cgroup its ancestors must tell.
	t.Run("adopted, while its parent runs", func(t *testing.T) {
		w := &way{dir: t.TempDir()}
		f, ended := w.start(t, "a", `env -i setsid sh -c 'echo $$ > pid; exec sleep 60' & wait`)
		pid := w.id(t, "pid")
		f.Kill()
		<-ended
		closeFamily(t, f)
		if running(pid) {
			t.Errorf("process %d still runs", pid)
		}
	})
}

func TestSignalReachesDetachedProcesses(t *testing.T) {
	eachWay(t, func(t *testing.T, w *way) {
		f, ended := w.start(t, "a", `setsid sh -c 'trap "echo term > signal; exit" TERM; echo $$ > pid; while :; do sleep 0.01; done' & wait`)
		pid := w.id(t, "pid")
		f.Signal(syscall.SIGTERM)
		if status := <-ended; !status.Signaled() || status.Signal() != syscall.SIGTERM {
			t.Errorf("the program ended with %v, want SIGTERM", status)
		}
		eventually(t, "the detached process ends by itself", func() bool { return !running(pid) && !f.Alive() })
		if text, err := os.ReadFile(filepath.Join(w.dir, "signal")); err != nil || string(text) != "term\n" {
			t.Errorf("it wrote %q, %v; want that it got SIGTERM", text, err)
		}
		closeFamily(t, f)
	})
}

func TestOneOfTwoFamilies(t *testing.T) {
	eachWay(t, func(t *testing.T, w *way) {
		detach := func(file string) string {
			return `(setsid sh -c 'echo $$ > ` + file + `; exec sleep 60' &); while ! test -s ` + file + `; do sleep 0.01; done; `
		}
		first, firstEnded := w.start(t, "a", detach("first"))
		second, secondEnded := w.start(t, "ab", detach("second")+`while ! test -e end; do sleep 0.01; done; exit 4`)
		<-firstEnded
		mine, other := w.id(t, "first"), w.id(t, "second")
		closeFamily(t, first)
		if running(mine) || !running(other) {
			t.Errorf("the family's process runs: %v, want false; the other's: %v, want true", running(mine), running(other))
		}
		if err := os.WriteFile(filepath.Join(w.dir, "end"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if status := <-secondEnded; status.ExitStatus() != 4 {
			t.Errorf("exit status of the other program %d, want 4", status.ExitStatus())
		}
		closeFamily(t, second)
		if running(other) {
			t.Error("the other's process still runs")
		}
	})
}

// Each process starts the next in a session of its own and ends.
func TestProcessesThatKeepMoving(t *testing.T) {
	eachWay(t, func(t *testing.T, w *way) {
		script := filepath.Join(w.dir, "move")
		if err := os.WriteFile(script, []byte("#!/bin/sh\ntest -e go || echo $$ > pid\ntouch go\nsleep 0.02\nsetsid ./move &\n"),
			0o700); err != nil {
			t.Fatal(err)
		}
		f, ended := w.start(t, "a", `./move; while ! test -s pid; do sleep 0.01; done`)
		<-ended
		closeFamily(t, f)
		if all := marked(t, "a"); len(all) > 0 {
			t.Errorf("%v still run", all)
		}
	})
}

// marked returns the living processes of a trial.
func marked(t *testing.T, trial string) (found []process) {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if !p.ended && p.pid != os.Getpid() && p.marked([]byte("\x00"+Variable+"="+trial+"\x00")) {
			found = append(found, p)
		}
	}
	return found
}

// Programs of this process that are no families keep their processes and their exit status.
func TestOtherChildrenAreSpared(t *testing.T) {
	w := &way{dir: t.TempDir()}
	other := exec.Command("/bin/sh", "-c", "echo $$ > other; read line; exit 5")
	other.Dir = w.dir
	other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	w.id(t, "other")
	f, ended := w.start(t, "a", escapes["a session of its own"])
	<-ended
	closeFamily(t, f)
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other program ends", func() bool { return !running(other.Process.Pid) })
	now := time.Now()
	children.sweep(now)
	children.sweep(now.Add(unclaimed / 2))
	if err := other.Wait(); other.ProcessState.ExitCode() != 5 {
		t.Errorf("the other program ended with %v, %v; want exit code 5", other.ProcessState, err)
	}
}

// What a family leaves as zombies is waited for: at its end, or after a while if nothing tells
// whose it was.
func TestZombiesAreWaitedFor(t *testing.T) {
	w := &way{dir: t.TempDir()}
	f, ended := w.start(t, "a", `(true & echo $! > mine; true) & wait; (setsid sh -c 'echo $$ > pid' &); `+untilPID+
		`while ! test -e end; do sleep 0.01; done`)
	pid := w.id(t, "pid")
	eventually(t, "the daemon ends", func() bool { return !running(pid) })
	now := time.Now().Add(time.Hour) // later than any other sweep
	children.mu.Lock()
	children.swept = time.Time{}
	children.mu.Unlock()
	children.sweep(now)
	if _, ok := readProcess(pid); !ok {
		t.Error("what has only just ended was waited for")
	}
	children.sweep(now.Add(unclaimed))
	if p, ok := readProcess(pid); ok {
		t.Errorf("%+v was not waited for", p)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-ended
	mine := w.id(t, "mine")
	closeFamily(t, f)
	if p, ok := readProcess(mine); ok {
		t.Errorf("%+v was not waited for", p)
	}
}

// killed starts a family in another process, kills that process, and returns the id of the
// family's process.
func killed(t *testing.T, w *way, script string) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "cd "+w.dir+"; "+script)
	cmd.Env = append(os.Environ(), supervisor+"="+w.dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := w.id(t, "pid")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	return pid
}

func TestOrphansOfAKilledWorker(t *testing.T) {
	for name, script := range escapes {
		t.Run(name, func(t *testing.T) {
			w := &way{dir: t.TempDir()}
			pid := killed(t, w, script+"wait; exec sleep 60")
			if n := KillOrphans(t.TempDir()); n != 0 || !running(pid) {
				t.Errorf("killed %d processes of another worker", n)
			}
			if n := KillOrphans(w.dir); n < 1 {
				t.Errorf("killed %d processes, want at least 1", n)
			}
			eventually(t, "it ends", func() bool { return !running(pid) })
			if left, err := filepath.Glob(filepath.Join(ownCgroup(), groupPrefix(w.dir)+"*")); err != nil || len(left) > 0 && ownCgroup() != "" {
				t.Errorf("cgroups %v are left, %v", left, err)
			}
		})
	}
}

// A worker that is started from within a trial spares what it descends from.
func TestAncestorsAreSpared(t *testing.T) {
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	spared := ancestors(all)
	if !spared[os.Getpid()] || !spared[os.Getppid()] {
		t.Errorf("spared %v, want this process and its parent", spared)
	}
}

func TestMissingProgram(t *testing.T) {
	eachWay(t, func(t *testing.T, w *way) {
		cmd := exec.Command("/no/such/program")
		if _, _, err := startIn(w.parent, cmd, w.dir, "a"); err == nil {
			t.Error("no error")
		}
		if left, _ := filepath.Glob(filepath.Join(ownCgroup(), groupPrefix(w.dir)+"*")); w.parent != "" && len(left) > 0 {
			t.Errorf("cgroups %v are left", left)
		}
		if refused.Load() {
			t.Error("cgroups are given up for a program that does not exist")
		}
	})
}

// The texts are those of real machines: systemd with one hierarchy and with two, a container
// with its own namespace, one that shows a part of the tree, and version 1 alone.
func TestCgroupDir(t *testing.T) {
	for name, tt := range map[string]struct{ groups, mounts, want string }{
		"one hierarchy": {"0::/user.slice/a.scope\n", "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			"/sys/fs/cgroup/user.slice/a.scope"},
		"two": {"4:memory:/x\n0::/b\n", "30 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 24 0:28 / /sys/fs/cgroup/unified " +
			"rw - cgroup2 cgroup2 rw\n",
			"/sys/fs/cgroup/unified/b"},
		"a container":       {"0::/\n", "40 39 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "/sys/fs/cgroup"},
		"a part":            {"0::/pods/a/b\n", "40 39 0:26 /pods/a /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "/sys/fs/cgroup/b"},
		"another part":      {"0::/pods/b\n", "40 39 0:26 /pods/a /sys/fs/cgroup ro - cgroup2 cgroup rw\n", ""},
		"outside":           {"0::/../b\n", "40 39 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n", ""},
		"a space":           {"0::/b c\n", `40 39 0:26 / /mnt/c\040g rw - cgroup2 cgroup rw` + "\n", "/mnt/c g/b c"},
		"version 1":         {"4:memory:/x\n", "30 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", ""},
		"nothing is there":  {"", "", ""},
		"without a version": {"0::\n", "40 39 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n", ""},
	} {
		if got := cgroupDir(tt.groups, tt.mounts); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestNoCgroupWhereNoneCanBeMade(t *testing.T) {
	for name, parent := range map[string]string{"none": "", "no directory": "/no/such/directory", "no cgroup": t.TempDir()} {
		if g := newCgroup(parent, "w"); g != nil {
			t.Errorf("%s: made %s", name, g.dir)
		}
	}
}

// A cgroup that nothing can be started in, as one of threads, leaves the program to adoption.
func TestCgroupThatRefusesPrograms(t *testing.T) {
	parent := cgroupParent(t)
	threads, err := os.MkdirTemp(parent, "fantasia-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(threads) }()
	if err := os.WriteFile(filepath.Join(threads, "cgroup.type"), []byte("threaded"), 0); err != nil {
		t.Skipf("the kernel makes no cgroup of threads: %v", err)
	}
	defer refused.Store(false)
	w := &way{dir: t.TempDir()}
	cmd := exec.Command("/bin/sh", "-c", escapes["a session of its own"]+"exit 6")
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), Variable+"=a")
	started, m, err := startIn(threads, cmd, w.dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	f := &Family{cmd: started, members: m}
	if status := f.Wait(); status.ExitStatus() != 6 || !refused.Load() {
		t.Errorf("exit status %d, want 6; cgroups are given up: %v, want true", status.ExitStatus(), refused.Load())
	}
	pid := w.id(t, "pid")
	closeFamily(t, f)
	if running(pid) {
		t.Errorf("process %d still runs", pid)
	}
}
