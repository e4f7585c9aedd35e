package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// settled is how long a failover is watched after another coordinator leads.
const settled = time.Second

// BenchmarkFailover measures for how long no trial is committed when the leader is killed,
// and when it is asked to end, and how many evaluations workers begin meanwhile. Three
// coordinators run, with leases of 2 s, and two workers with four slots each. In the end
// the ledger is held against what the evaluations logged.
func BenchmarkFailover(b *testing.B) {
	b.Run("killed", func(b *testing.B) { benchmarkFailover(b, (*testenv.Process).Kill) })
	b.Run("handover", func(b *testing.B) { benchmarkFailover(b, (*testenv.Process).Stop) })
}

func benchmarkFailover(b *testing.B, end func(*testenv.Process)) {
	const parallelism = 16
	c := startCluster(b, 3, 2, 4)
	c.create("random", 1_000_000, parallelism)
	c.Await("cluster", 10)
	var gaps []time.Duration
	var begun []int
	for b.Loop() {
		leader, _, epoch := c.Leader(0)
		before := len(evaluations(b, c.log))
		gaps = append(gaps, c.longestGap(func() {
			end(leader)
			c.Leader(epoch)
			time.Sleep(settled)
		}))
		begun = append(begun, len(evaluations(b, c.log))-before)
		leader.Restart()
	}
	slices.Sort(gaps)
	slices.Sort(begun)
	for _, p := range []int{50, 90, 99, 100} {
		b.ReportMetric(float64(gaps[(len(gaps)*p+99)/100-1].Milliseconds()), fmt.Sprintf("ms-p%d", p))
	}
	b.ReportMetric(float64(begun[0])/2, "least-evaluations") // each has a line when it begins and one when it ends
	b.ReportMetric(0, "ns/op")
	c.finish(parallelism)
}

// longestGap returns the longest time between two trials that are committed while f runs.
func (c *cluster) longestGap(f func()) time.Duration {
	ctx, cancel := context.WithCancel(c.t.Context())
	longest := make(chan time.Duration)
	go func() {
		var gap time.Duration
		count, last := c.created(ctx), time.Now()
		for ctx.Err() == nil {
			now := c.created(ctx)
			if now > count {
				gap = max(gap, time.Since(last))
				count, last = now, time.Now()
			}
			time.Sleep(time.Millisecond)
		}
		longest <- max(gap, time.Since(last))
	}()
	f()
	cancel()
	return <-longest
}

// created returns how many trials have been committed; 0 if ctx has ended.
func (c *cluster) created(ctx context.Context) int {
	s, err := c.Ledger.Study(ctx, "cluster")
	if err != nil {
		if ctx.Err() == nil {
			c.t.Error(err)
		}
		return 0
	}
	return s.Status.Counts.Ended() + s.Status.Counts.Open()
}

// finish lowers the budget to a few more trials than there are, and verifies the ledger
// when they have ended.
func (c *cluster) finish(parallelism int) {
	c.t.Helper()
	var trials int
	testenv.Eventually(c.t, time.Minute, func(ctx context.Context) error {
		trials = c.created(ctx) + 2*parallelism
		_, err := c.Client().UpdateStudy(ctx, connect.NewRequest(&fantasiav1.UpdateStudyRequest{
			Name: "studies/cluster", StudyFile: fmt.Sprintf(clusterStudy, "random", trials, parallelism),
		}))
		return err
	})
	s, _ := c.Await("cluster", trials)
	c.verify(s, trials)
}
