package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// fantasia runs the command line, a program that must succeed or fail as wanted, and returns what
// it wrote.
func fantasia(t *testing.T, program string, succeed bool, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if (err == nil) != succeed {
		t.Fatalf("fantasia %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestRestore backs a ledger up while a study runs, lets more trials run, kills
// everything, and restores the backup into an empty etcd beside the old NATS: the study
// goes on, and each trial is run and told once.
func TestRestore(t *testing.T) {
	const trials = 200
	program := testenv.Build(t, module+"cmd/fantasia") // which can take longer than the study
	c := startCluster(t, 2, 2, 4)
	c.create("random", trials, 8)
	c.Await("cluster", 10)
	c.KillLeader() // its heir has an epoch that the empty etcd does not reach soon
	c.Await("cluster", 40)
	file := filepath.Join(c.dir, "studies.backup")
	at := "--etcd=" + c.EtcdServer.URL
	if out := fantasia(t, program, true, "backup", file, at); !strings.Contains(out, "1 study, ") {
		t.Errorf("fantasia backup says %q", out)
	}
	if out := fantasia(t, program, false, "restore", file, at, "--force"); !strings.Contains(out, "stop all coordinators") {
		t.Errorf("fantasia restore beside a leader says %q", out)
	}
	later, over := c.Await("cluster", 90)
	if over {
		t.Fatal("the study ended before etcd was lost")
	}
	before := c.processes()
	for _, p := range before {
		p.Kill()
	}
	c.EtcdServer.Wipe()
	c.EtcdServer.Restart()
	c.NATSServer.Restart()
	if out := fantasia(t, program, true, "restore", file, at); !strings.Contains(out, "1 study, ") {
		t.Errorf("fantasia restore says %q", out)
	}
	if out := fantasia(t, program, false, "restore", file, at); !strings.Contains(out, "--force") {
		t.Errorf("fantasia restore over a ledger says %q", out)
	}
	restored, over := c.Await("cluster", 0)
	if over || restored.Status.Counts.Ended() >= later.Status.Counts.Ended() {
		t.Fatalf("restored %+v, which should be earlier than %+v", restored.Status.Counts, later.Status.Counts)
	}
	for _, p := range before[2:] {
		p.Restart()
	}
	s, _ := c.Await("cluster", trials)
	c.verify(s, trials)
	t.Logf("%d trials had ended at the backup, %d when etcd was lost", restored.Status.Counts.Ended(), later.Status.Counts.Ended())
}

// processes are etcd, NATS, the coordinators and the workers, in this order.
func (c *cluster) processes() []*testenv.Process {
	all := []*testenv.Process{c.EtcdServer.Process, c.NATSServer.Process}
	for _, p := range c.Coordinators {
		all = append(all, p)
	}
	return append(all, c.workers...)
}
