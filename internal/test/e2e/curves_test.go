package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// TestNoStepIsLostWhenLeadersAreKilled kills the leader twice while programs report
// their steps: each trial's curve has every one of them, in order.
func TestNoStepIsLostWhenLeadersAreKilled(t *testing.T) {
	const trials, steps = 12, 80
	c := startCluster(t, 3, 2, 2, fmt.Sprint(stepsVariable, "=", steps))
	c.create("random", trials, 4)
	for _, ended := range []int{1, 5} {
		if _, over := c.Await("cluster", ended); over {
			t.Fatal("the study ended before its leader was killed")
		}
		c.KillLeader() // the others are in the middle of their steps
	}
	s, _ := c.Await("cluster", trials)
	if s.Status.State != study.Completed {
		t.Fatalf("the study is %s: %s", s.Status.State, s.Status.Reason)
	}
	stored, err := c.Ledger.LoadStudy(t.Context(), s.Study.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		// The value is a report without a step, which is the next one.
		points := c.curve(s.Study.ID, tr.Number, steps+1)
		for k, p := range points {
			want := -float64(k + 1)
			if k == steps {
				want = tr.Values.First()
			}
			if p.Step != int64(k+1) || p.Value != want {
				t.Fatalf("trial %d: point %d is %+v, want step %d with %v", tr.Number, k, p, k+1, want)
			}
		}
	}
}

// curve waits until the curve of a trial ends with a step, and returns its points.
func (c *cluster) curve(id string, trial int, last int64) (points []curve.Point) {
	c.t.Helper()
	testenv.Eventually(c.t, 20*time.Second, func(ctx context.Context) error {
		stored, err := c.Ledger.Curve(ctx, id, trial)
		if err != nil {
			return err
		}
		if stored == nil {
			return errors.New("nothing is stored")
		}
		points = stored.Series()[0].Points
		if end := points[len(points)-1].Step; end != last {
			return fmt.Errorf("the last of %d points of trial %d is step %d, want %d", len(points), trial, end, last)
		}
		return nil
	})
	return points
}
