package e2e

import (
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// TestZombieLeader stops the leader in its tracks for three times its lease's
// time to live, in the middle of a study, and lets it go on: it wakes up in the
// belief that it leads. Another leads by then; nothing is lost or told twice,
// nothing is run twice, and the zombie becomes a replica like any other.
func TestZombieLeader(t *testing.T) {
	const trials = 400
	c := startCluster(t, 2, 2, 4)
	c.create("random", trials, 8)
	if _, over := c.Await("cluster", 20); over {
		t.Fatal("the study ended before the leader was stopped")
	}
	zombie, address, epoch := c.Leader(0)
	zombie.Pause()
	awake := time.After(3 * testcluster.LeaseTTL)
	_, heir, _ := c.Leader(epoch)
	if heir == address {
		t.Fatalf("%s leads though it is stopped", heir)
	}
	<-awake
	before, over := c.Await("cluster", 0)
	if over {
		t.Fatal("the study ended before the zombie woke up")
	}
	zombie.Resume()
	s, _ := c.Await("cluster", trials)
	c.verify(s, trials)
	testenv.Eventually(t, time.Minute, c.Answering(address, "/readyz"))
	if _, now, _ := c.Leader(0); now != heir {
		t.Errorf("%s leads, %s did when the zombie woke up", now, heir)
	}
	t.Logf("%d trials had ended when the zombie woke up", before.Status.Counts.Ended())
}
