//go:build upgrade

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// earlierVariable is the directory of the programs of an earlier build; scripts/upgrade
// makes it.
const earlierVariable = "FANTASIA_EARLIER"

// build is the programs of one version.
type build struct{ coordinator, worker, cli string }

// builds returns the programs of the earlier version, and those of the working tree.
func builds(t *testing.T, c *cluster) (earlier, now build) {
	t.Helper()
	dir := os.Getenv(earlierVariable)
	if dir == "" {
		t.Fatalf("%s is not set: run make test-upgrade", earlierVariable)
	}
	earlier = build{filepath.Join(dir, "coordinator"), filepath.Join(dir, "worker"), filepath.Join(dir, "fantasia")}
	now = build{c.Program, c.workers[0].Path(), testenv.Build(t, module+"cmd/fantasia")}
	return earlier, now
}

// replaceCoordinators replaces them one after another, as a rolling upgrade does: the leader
// hands over when its turn comes.
func (c *cluster) replaceCoordinators(b build) {
	c.t.Helper()
	for _, p := range c.Coordinators {
		p.Replace(b.coordinator)
		c.Leader(0)
	}
}

// replaceWorkers replaces them one after another; they hand their trials back.
func (c *cluster) replaceWorkers(b build) {
	c.t.Helper()
	for _, w := range c.workers {
		w.Replace(b.worker)
	}
}

// upgrade creates a study on the earlier version, and goes through all ways in which the two
// versions can meet: new coordinators with earlier workers, all new, earlier coordinators with
// new workers after a rollback, and all new again. Each runs more trials, while a leader and a
// worker are killed. Meanwhile the command line of each version reads the study from the
// other one's coordinators.
func (c *cluster) upgrade(t *testing.T, file string, ended []int) {
	t.Helper()
	earlier, current := builds(t, c)
	c.replaceWorkers(earlier)
	c.replaceCoordinators(earlier)
	c.Create(file)
	steps := []struct {
		what string
		do   func()
	}{
		{"all earlier", func() {}},
		{"new coordinators", func() { c.replaceCoordinators(current) }},
		{"all new", func() { c.replaceWorkers(current) }},
		{"rollback of the coordinators", func() { c.replaceCoordinators(earlier) }},
		{"all new again", func() { c.replaceCoordinators(current) }},
	}
	for i, s := range steps {
		before, _ := c.Await("cluster", 0)
		s.do()
		now, over := c.Await("cluster", ended[i])
		t.Logf("%s: %d trials had ended before, %d afterwards", s.what, before.Status.Counts.Ended(), now.Status.Counts.Ended())
		if over {
			t.Fatalf("the study ended before %q had run %d trials", s.what, ended[i])
		}
		_, address, _ := c.Leader(0)
		for _, cli := range []string{earlier.cli, current.cli} {
			if out := fantasia(t, cli, true, "study", "get", "cluster", "--server", "http://"+address); !strings.Contains(out, "RUNNING") {
				t.Errorf("%s: %s study get says\n%s", s.what, cli, out)
			}
			fantasia(t, cli, true, "trial", "list", "cluster", "--server", "http://"+address)
		}
		c.KillLeader()
		w := c.workers[i%len(c.workers)]
		w.Kill()
		w.Restart()
	}
}

// TestUpgrade upgrades, rolls back and upgrades again while a model suggests trials whose
// programs report measurements: none is lost, told twice or run twice.
func TestUpgrade(t *testing.T) {
	const trials = 240
	c := startCluster(t, 3, 3, 3, stepsVariable+"=4")
	c.upgrade(t, fmt.Sprintf(clusterStudy, "gp", trials, 8), []int{40, 80, 120, 160, 200})
	s, _ := c.Await("cluster", trials)
	c.verify(s, trials)
}

// TestUpgradeOfPromotions does so while the best trials of a study are promoted: each
// version makes the promotions that the other one would have made.
func TestUpgradeOfPromotions(t *testing.T) {
	const trials, levels, reduction = 100, 4, 3
	c := startCluster(t, 3, 4, 2, epochVariable+"=50ms")
	c.upgrade(t, fmt.Sprintf(promotedStudy, trials), []int{15, 30, 45, 60, 75})
	s, _ := c.Await("cluster", trials)
	if s.Status.State != study.Completed || s.Status.Counts.Completed != trials || s.Status.Position != 2*trials {
		t.Errorf("the study is %s (%s) at %d with %+v, want %d completed trials, each told once",
			s.Status.State, s.Status.Reason, s.Status.Position, s.Status.Counts, trials)
	}
	stored, err := c.Ledger.LoadStudy(t.Context(), s.Study.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := testcluster.Promotions(stored.Trials, levels, reduction); err != nil {
		t.Error(err)
	}
}
