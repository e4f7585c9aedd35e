//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"connectrpc.com/connect"
	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
)

// create starts a study once there is a leader.
func (c *cluster) create(file string) {
	c.t.Helper()
	c.await(2*time.Minute, func(ctx context.Context) error {
		_, err := c.api().CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: file}))
		if connect.CodeOf(err) == connect.CodeAlreadyExists {
			return nil // an answer was lost
		}
		return err
	})
}

func (c *cluster) study(ctx context.Context, name string) (*fantasiav1.Study, error) {
	got, err := c.api().GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/" + name}))
	if err != nil {
		return nil, err
	}
	return got.Msg.GetStudy(), nil
}

// trials returns all trials of a study, by number.
func (c *cluster) trials(name string) []*fantasiav1.Trial {
	c.t.Helper()
	var all []*fantasiav1.Trial
	c.await(time.Minute, func(ctx context.Context) error {
		all = nil
		for token := ""; ; {
			page, err := c.api().ListTrials(ctx,
				connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: "studies/" + name, PageSize: 100, PageToken: token}))
			if err != nil {
				return err
			}
			all = append(all, page.Msg.GetTrials()...)
			if token = page.Msg.GetNextPageToken(); token == "" {
				return nil
			}
		}
	})
	return all
}

// ended waits until the given number of a study's trials have completed.
func (c *cluster) ended(within time.Duration, name string, completed int) {
	c.t.Helper()
	c.await(within, func(ctx context.Context) error {
		s, err := c.study(ctx, name)
		if err != nil {
			return err
		}
		if n := int(s.GetTrials().GetCompleted()); n < completed {
			if s.GetState() != fantasiav1.StudyState_STUDY_STATE_RUNNING {
				c.t.Fatalf("study %s is %v after %d of %d trials: %s", name, s.GetState(), n, completed, s.GetReason())
			}
			return fmt.Errorf("%d trials of %s have completed, want %d: %v %s", n, name, completed, s.GetTrials(), s.GetReason())
		}
		return nil
	})
}

// completed waits for the end of a study.
func (c *cluster) completed(within time.Duration, name string) {
	c.t.Helper()
	c.await(within, func(ctx context.Context) error {
		s, err := c.study(ctx, name)
		if err != nil {
			return err
		}
		switch s.GetState() {
		case fantasiav1.StudyState_STUDY_STATE_COMPLETED:
			return nil
		case fantasiav1.StudyState_STUDY_STATE_RUNNING:
			return fmt.Errorf("%s runs: %v %s", name, s.GetTrials(), s.GetReason())
		default:
			c.t.Fatalf("study %s is %v: %s", name, s.GetState(), s.GetReason())
			return nil
		}
	})
}

// workers returns the workers of a pool that take trials.
func (c *cluster) workers(ctx context.Context, pool string) ([]*fantasiav1.Worker, error) {
	list, err := c.api().ListWorkers(ctx, connect.NewRequest(&fantasiav1.ListWorkersRequest{}))
	if err != nil {
		return nil, err
	}
	var all []*fantasiav1.Worker
	for _, w := range list.Msg.GetWorkers() {
		if w.GetPool() == pool && !w.GetLeaving() {
			all = append(all, w)
		}
	}
	return all, nil
}

var leading = regexp.MustCompile(`(?m)^fantasia_leader_leading(\{[^}]*\})? 1$`)

// leader returns the pod that reports to be the leader, different from the one before.
func (c *cluster) leader(before string) string {
	c.t.Helper()
	var name string
	c.await(time.Minute, func(ctx context.Context) error {
		pods, err := c.pods(ctx, "coordinator")
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.Name == before {
				continue
			}
			text, err := c.kube.CoreV1().Pods(c.namespace).ProxyGet("http", p.Name, "8080", "metrics", nil).DoRaw(ctx)
			if err == nil && leading.Match(text) {
				name = p.Name
				return nil
			}
		}
		return fmt.Errorf("none of %d coordinators leads", len(pods))
	})
	return name
}
