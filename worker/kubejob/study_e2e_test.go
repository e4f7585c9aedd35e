//go:build e2e

package kubejob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

const jobStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: jobs}
spec:
  objective: {metric: error, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  budget: {maxTrials: 8}
  parallelism: 4
  pool: jobs
  trial: {command: [unused], timeout: 5m, grace: 5s, retries: {lost: 0}}
`

// fantasia starts a coordinator and a kubeworker of the pool jobs, which has a template.
func (c *cluster) fantasia(t *testing.T, template string, slots int, flags ...string) (fantasiav1connect.StudyServiceClient,
	*testenv.Process) {
	t.Helper()
	nats, etcd := testenv.StartNATS(t, testenv.NATSConfig{}), testenv.StartEtcd(t)
	const module = "github.com/fantasia-hpo/fantasia/"
	address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	testenv.Start(t, testenv.Build(t, module+"cmd/coordinator"), []string{
		"--etcd", etcd.URL, "--nats", nats.URL, "--listen", address, "--name", "c",
	}, nil, nil)
	file := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	worker := testenv.Start(t, testenv.Build(t, module+"cmd/kubeworker"), append([]string{
		"--nats", nats.URL, "--pool", "jobs", "--slots", strconv.Itoa(slots), "--name", "w", "--state", t.TempDir(),
		"--template", file, "--namespace", c.o.Namespace, "--kubeconfig", os.Getenv("KUBECONFIG"),
	}, flags...), nil, nil)
	transport := &http.Transport{DisableKeepAlives: true}
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: transport, Timeout: 10 * time.Second}, "http://"+address), worker
}

// create creates a study once the coordinator leads.
func create(t *testing.T, client fantasiav1connect.StudyServiceClient, study string) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := client.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: study}))
		if connect.CodeOf(err) == connect.CodeAlreadyExists {
			return nil
		}
		return err
	})
}

// TestAStudyThroughJobs evaluates a study's trials by Jobs while the worker is killed
// and restarted: its Jobs continue, each trial is evaluated once, and nothing is left
// behind.
func TestAStudyThroughJobs(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	client, worker := c.fantasia(t, c.jobTemplate("--steps=8", "--pause=500ms"), 4, "--ttl", "20s", "--keep")
	create(t, client, jobStudy)
	pods := map[string]int{} // by attempt
	seen := map[string]bool{}
	look := func(ctx context.Context) (running int, err error) {
		list, err := c.kube.CoreV1().Pods(c.o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: LabelStudy + "=jobs"})
		if err != nil {
			return 0, err
		}
		for _, p := range list.Items {
			if !seen[p.Name] {
				seen[p.Name] = true
				pods[p.Labels[LabelTrial]+"."+p.Labels[LabelAttempt]]++
			}
			if p.Status.Phase == "Running" {
				running++
			}
		}
		return running, nil
	}
	for _, end := range []func(){worker.Kill, worker.Stop} {
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			running, err := look(ctx)
			if err == nil && running < 2 {
				err = fmt.Errorf("%d Jobs run", running)
			}
			return err
		})
		end()
		worker.Restart()
	}
	testenv.Eventually(t, 3*time.Minute, func(ctx context.Context) error {
		if _, err := look(ctx); err != nil {
			return err
		}
		s, err := client.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/jobs"}))
		if err == nil && s.Msg.GetStudy().GetState() != fantasiav1.StudyState_STUDY_STATE_COMPLETED {
			err = fmt.Errorf("the study is %v", s.Msg.GetStudy().GetState())
		}
		return err
	})
	trials, err := client.ListTrials(t.Context(), connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: "studies/jobs"}))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(trials.Msg.GetTrials()); n != 8 || len(pods) != 8 {
		t.Errorf("%d trials, evaluated by pods of %d attempts, want 8 of each", n, len(pods))
	}
	for _, trial := range trials.Msg.GetTrials() {
		x := trial.GetParameters().GetFields()["x"].GetNumberValue()
		if trial.Value == nil || trial.GetValue() != x*x || len(trial.GetAttempts()) != 1 {
			t.Errorf("trial %d at x=%v has the value %v after %d attempts, want x² after one", trial.GetNumber(), x, trial.GetValue(),
				len(trial.GetAttempts()))
		}
	}
	for attempt, n := range pods {
		if n != 1 {
			t.Errorf("attempt %s was run by %d pods", attempt, n)
		}
	}
	testenv.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		list, err := c.kube.BatchV1().Jobs(c.o.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = errors.New("Jobs are left")
		}
		return err
	})
	// The Jobs are gone with their pods; the worker has kept what their programs wrote.
	for number := 1; number <= 8; number++ {
		if text := logOf(t, client, fmt.Sprintf("studies/jobs/trials/%d", number)); strings.Count(text, `"error"`) != 8 {
			t.Errorf("the log of trial %d: want 8 reports in\n%s", number, text)
		}
	}
}

// logOf returns the log of a trial's last attempt.
func logOf(t *testing.T, client fantasiav1connect.StudyServiceClient, trial string) string {
	t.Helper()
	stream, err := client.TailTrialLogs(t.Context(), connect.NewRequest(&fantasiav1.TailTrialLogsRequest{Name: trial}))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for stream.Receive() {
		text.Write(stream.Msg().GetData())
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		t.Errorf("the log of %s: %v", trial, err)
	}
	return text.String()
}
