//go:build e2e

package kubejob

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

var (
	streamTrials = flag.Int("stream.trials", 24, "how many trials TestStreamsBesideJobs evaluates in each way")
	streamSlots  = flag.Int("stream.slots", 6, "how many of them at once")
)

// shortStudy is a study whose trials take the time that the template says.
func shortStudy(name, mode string, trials, slots int) string {
	return fmt.Sprintf(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: error, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: random}
  budget: {maxTrials: %d}
  parallelism: %d
  pool: jobs
  trial: {command: [unused], mode: %s, timeout: 5m, grace: 5s, retries: {lost: 2}}
`, name, trials, slots, mode)
}

// completed waits until a study has, and returns its trials.
func completed(t *testing.T, client fantasiav1connect.StudyServiceClient, name string) []*fantasiav1.Trial {
	t.Helper()
	testenv.Eventually(t, 15*time.Minute, func(ctx context.Context) error {
		s, err := client.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/" + name}))
		if err == nil && s.Msg.GetStudy().GetState() != fantasiav1.StudyState_STUDY_STATE_COMPLETED {
			err = fmt.Errorf("the study is %v", s.Msg.GetStudy().GetState())
		}
		return err
	})
	var all []*fantasiav1.Trial
	for token := ""; ; {
		page, err := client.ListTrials(t.Context(),
			connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: "studies/" + name, PageToken: token}))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Msg.GetTrials()...)
		if token = page.Msg.GetNextPageToken(); token == "" {
			return all
		}
	}
}

// jobs returns how many Jobs a study has had; none is removed meanwhile.
func (c *cluster) jobs(t *testing.T, study string) int {
	t.Helper()
	list, err := c.kube.BatchV1().Jobs(c.o.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: LabelStudy + "=" + study})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// squared checks that every trial has its value after so many attempts at most.
func squared(t *testing.T, trials []*fantasiav1.Trial, want, attempts int) (again int) {
	t.Helper()
	if len(trials) != want {
		t.Errorf("%d trials, want %d", len(trials), want)
	}
	for _, trial := range trials {
		x := trial.GetParameters().GetFields()["x"].GetNumberValue()
		if n := len(trial.GetAttempts()); trial.Value == nil || trial.GetValue() != x*x || n > attempts {
			t.Errorf("trial %d at x=%v has the value %v after %d attempts, want x² after at most %d", trial.GetNumber(), x, trial.GetValue(), n,
				attempts)
		} else if n > 1 {
			again++
		}
	}
	return again
}

// TestStreamsBesideJobs evaluates trials of a second by a Job each, and then by one Job a slot.
func TestStreamsBesideJobs(t *testing.T) {
	for _, mode := range []string{"process", "stream"} {
		c := newCluster(t)
		flags, jobs := []string{"--pause=1s"}, *streamTrials
		if mode == "stream" {
			flags, jobs = append(flags, "--stream"), *streamSlots
		}
		client, worker := c.fantasia(t, c.jobTemplate(flags...), *streamSlots)
		begun := time.Now()
		create(t, client, shortStudy(mode, mode, *streamTrials, *streamSlots))
		trials := completed(t, client, mode)
		t.Logf("mode %s: %d trials of a second, %d at once: %s", mode, len(trials), *streamSlots, time.Since(begun).Round(100*time.Millisecond))
		squared(t, trials, *streamTrials, 1)
		if n := c.jobs(t, mode); n > jobs {
			t.Errorf("mode %s took %d Jobs, want at most %d", mode, n, jobs)
		}
		worker.Stop()
	}
}

// TestAStudyThroughStreams deletes a pod, and kills and stops the worker, while Jobs evaluate one
// trial after another: no result is lost, only the trials that ran get another attempt, every trial
// has its log, and no pod stays.
func TestAStudyThroughStreams(t *testing.T) {
	t.Parallel()
	const trials, slots, steps = 40, 4, 2
	c := newCluster(t)
	client, worker := c.fantasia(t, c.jobTemplate("--stream", fmt.Sprintf("--steps=%d", steps), "--pause=500ms"), slots)
	create(t, client, shortStudy("streams", "stream", trials, slots))
	running := func(ctx context.Context) (string, error) {
		list, err := c.kube.CoreV1().Pods(c.o.Namespace).List(ctx,
			metav1.ListOptions{LabelSelector: LabelStudy + "=streams", FieldSelector: "status.phase=Running"})
		if err != nil || len(list.Items) < slots {
			return "", errors.Join(err, fmt.Errorf("%d Jobs run", len(list.Items)))
		}
		return list.Items[0].Name, nil
	}
	remove := func() {
		name, err := running(t.Context())
		if err == nil {
			err = c.kube.CoreV1().Pods(c.o.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
		}
		if err != nil {
			t.Error(err)
		}
	}
	for i, end := range []func(){remove, func() { worker.Kill(); worker.Restart() }, func() { worker.Stop(); worker.Restart() }} {
		testenv.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
			s, err := client.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/streams"}))
			if err != nil {
				return err
			}
			if n := int(s.Msg.GetStudy().GetTrials().GetCompleted()); n < 4+8*i {
				return fmt.Errorf("%d trials have completed", n)
			}
			_, err = running(ctx)
			return err
		})
		end()
	}
	// The pod had one trial, and the worker four, each time.
	if again := squared(t, completed(t, client, "streams"), trials, 3); again < 1 || again > 1+2*slots {
		t.Errorf("%d trials got another attempt, want 1 to %d", again, 1+2*slots)
	}
	for number := 1; number <= trials; number++ {
		text := logOf(t, client, fmt.Sprintf("studies/streams/trials/%d", number))
		if strings.Count(text, `"error"`) != steps || strings.Count(text, fmt.Sprintf(`"trial": %d,`, number)) != steps {
			t.Errorf("the log of trial %d is %q, want its %d reports", number, text, steps)
		}
	}
	worker.Stop()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		list, err := c.kube.CoreV1().Pods(c.o.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods run", len(list.Items))
		}
		return err
	})
}
