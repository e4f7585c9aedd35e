package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// What a worker logs about a full disk.
const (
	takesNothing = "taking no trials until results can be written to disk"
	fromMemory   = "cannot write a result to disk"
	handsBack    = "handing back a trial: there is no space on the disk for its files"
)

// logs waits until a worker has logged a text.
func logs(t *testing.T, p *testenv.Process, text string) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func(context.Context) error {
		if !strings.Contains(p.Output(), text) {
			return fmt.Errorf("a worker has not logged %q", text)
		}
		return nil
	})
}

// idle waits until no trial runs, and what ran has been told although no worker's disk has
// room. It returns how many evaluations have begun.
func (c *cluster) idle() int {
	c.t.Helper()
	testenv.Eventually(c.t, time.Minute, func(ctx context.Context) error {
		s, err := c.Ledger.Study(ctx, "cluster")
		if err != nil {
			return err
		}
		stored, err := c.Ledger.LoadStudy(ctx, s.Study.ID)
		if err != nil {
			return err
		}
		for i := range stored.Trials {
			if t := &stored.Trials[i]; t.State == study.TrialClaimed || t.State == study.TrialRunning {
				return fmt.Errorf("trial %d is %s", t.Number, t.State)
			}
		}
		return nil
	})
	return len(evaluations(c.t, c.log))
}

// TestFullDisk fills the disks of the workers, for what they do themselves and for the files
// of their trials.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const parallelism = 8
	f := startFaulty(t, 1, 2, 4)
	f.create("random", endless, parallelism)
	f.Await("cluster", 1)
	f.arm("spool-write=enospc") // the disk fills up after a trial was claimed
	for _, w := range f.workers {
		logs(t, w, fromMemory)
	}
	f.arm("spool-write=enospc;spool-probe=enospc")
	for _, w := range f.workers {
		logs(t, w, takesNothing)
	}
	begun := f.idle()
	time.Sleep(2 * time.Second) // time for trials that must not begin
	if now := f.idle(); now != begun {
		t.Errorf("%d evaluations began or ended while no disk had room", now-begun)
	}
	f.arm("trial-files=enospc")
	for _, w := range f.workers {
		logs(t, w, handsBack)
	}
	f.arm("")
	f.finish(parallelism)
}

// TestSlowDisk makes each write of a result take longer than the lease of a worker: results
// are late, but the heartbeats go on, so no attempt is lost.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	const trials = 4
	f := startFaultyWith(t, "8s", 1, 1, trials, "spool-write=sleep(10s)", "spool-probe=sleep(1s)")
	f.create("random", trials, trials)
	s, _ := f.Await("cluster", trials)
	f.verify(s, trials)
	stored, err := f.Ledger.LoadStudy(t.Context(), s.Study.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range stored.Trials {
		if tr := &stored.Trials[i]; len(tr.Attempts) != 1 {
			t.Errorf("trial %d has %d attempts, want the one whose result was late", tr.Number, len(tr.Attempts))
		}
	}
}

// smallDisk mounts a file system of its own, of which size is that of tmpfs, and returns its
// path. It skips the test on a machine where that is not allowed.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("this machine lets nobody mount a file system; TestFullDisk and TestLastWords need none: %v: %s", err, out)
	}
	script := fmt.Sprintf("mount -t tmpfs -o size=%s tmpfs '%s' && touch '%[2]s/mounted' && exec sleep infinity", size, dir)
	holder := testenv.Start(t, "unshare", []string{"-Urm", "sh", "-c", script}, nil, nil)
	disk := filepath.Join(fmt.Sprintf("/proc/%d/root", holder.PID()), dir)
	testenv.Eventually(t, time.Minute, func(context.Context) error {
		_, err := os.Stat(filepath.Join(disk, "mounted"))
		return err
	})
	return disk
}

// TestFullFileSystem runs a worker on a file system of 2 MiB, which is filled and emptied
// again.
func TestFullFileSystem(t *testing.T) {
	t.Parallel()
	const parallelism = 4
	disk := smallDisk(t, "2m")
	c := startCluster(t, 1, 0, 0)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := testenv.Start(t, testenv.Build(t, module+"cmd/worker"), []string{
		"--nats", c.NATS, "--slots", "4", "--heartbeat", "500ms", "--gpus", "none", "--pass-env", "E2E_*", "--state",
		filepath.Join(disk, "state"), "--", self,
	}, []string{programVariable + "=" + c.log, slowVariable + "=300ms"}, nil)
	c.workers = append(c.workers, w)
	c.create("random", endless, parallelism)
	c.Await("cluster", 1)
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	logs(t, w, takesNothing)
	begun := c.idle()
	time.Sleep(2 * time.Second) // time for trials that must not begin
	if now := c.idle(); now != begun {
		t.Errorf("%d evaluations began or ended while the disk had no room", now-begun)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.finish(parallelism)
}

// TestRunOnAFullDisk fills the disk of a fantasia run: it ends and says why, as it does when
// it is started again; once there is room, the same command goes on where it was.
func TestRunOnAFullDisk(t *testing.T) {
	t.Parallel()
	const trials = 60
	disk := smallDisk(t, "200m")
	dir := t.TempDir()
	file, log := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "evaluations")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, resumeStudy, trials, self, programVariable, log, slowVariable), 0o600); err != nil {
		t.Fatal(err)
	}
	run := testenv.Start(t, testenv.Build(t, module+"cmd/fantasia"),
		[]string{"run", file, "--state", filepath.Join(disk, "state"), "--gpus", "none"}, nil, nil)
	testenv.Eventually(t, time.Minute, func(context.Context) error {
		all, err := logged[evaluation](log)
		if err == nil && len(all) < 10 {
			err = fmt.Errorf("%d lines of evaluations, want 10", len(all))
		}
		return err
	})
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	for _, when := range []string{"full while it runs", "full when it starts"} {
		awaitEnd(t, run)
		if out := run.Output(); run.State() != "exit status 1" || !strings.Contains(out, "no space left on device") ||
			!strings.Contains(out, "run the same command again") {
			t.Errorf("%s: it ended with %s, and said:\n%s", when, run.State(), out)
		}
		if when == "full while it runs" {
			run.Restart()
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	run.Restart()
	awaitEnd(t, run)
	s := readState(t, filepath.Join(disk, "state"))
	if s == nil || s.Status.State != study.Completed || s.Status.Counts.Completed != trials || len(s.Trials) != trials ||
		s.Status.Position != 2*trials {
		t.Errorf("%+v: want %d completed trials, each created once and told once\n%s", s, trials, run.Output())
	}
}

func awaitEnd(t *testing.T, p *testenv.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatalf("the process goes on: %s", p.Output())
	}
}

// fill writes a file until its file system is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
