package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

const logsStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: logs}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: 1}
  parallelism: 1
  trial: {command: [unused]}
`

// logReader reads logs through one replica.
type logReader struct {
	t      *testing.T
	client fantasiav1connect.StudyServiceClient
}

// readLog reads the log of the study's trial to its end; hear is called with all that has
// come of an output whenever more of it comes.
func (l logReader) readLog(request *fantasiav1.TailTrialLogsRequest,
	hear func(s fantasiav1.LogStream, text string)) (map[fantasiav1.LogStream]string, error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	request.Name = "studies/logs/trials/1"
	stream, err := l.client.TailTrialLogs(ctx, connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	log := map[fantasiav1.LogStream]string{}
	for stream.Receive() {
		s := stream.Msg().GetStream()
		log[s] += string(stream.Msg().GetData())
		hear(s, log[s])
	}
	if err := stream.Close(); err != nil {
		l.t.Error(err)
	}
	return log, stream.Err()
}

// TestLogs reads the log of a trial through every replica: followed while it runs,
// after its end, and once its worker has been killed.
func TestLogs(t *testing.T) {
	const stdout, stderr = fantasiav1.LogStream_LOG_STREAM_STDOUT, fantasiav1.LogStream_LOG_STREAM_STDERR
	silent := func(fantasiav1.LogStream, string) {}
	dir := t.TempDir()
	release := filepath.Join(dir, "release")
	c := testcluster.Start(t, testcluster.Options{Coordinators: 2, Args: []string{"--worker-lease", "3s"}})
	script := fmt.Sprintf(
		`echo begun; echo oops >&2; while [ ! -e %s ]; do sleep 0.05; done; echo '{"fantasia": {"metrics": {"loss": 1}}}'; echo ended`, release)
	worker := testenv.Start(t, testenv.Build(t, module+"cmd/worker"), []string{
		"--nats", c.NATS, "--heartbeat", "500ms", "--gpus", "none", "--state", filepath.Join(dir, "worker"), "--", "/bin/sh", "-c", script,
	}, nil, nil)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	var readers []logReader
	for address := range c.Coordinators {
		readers = append(readers, logReader{t, fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: transport}, "http://"+address)})
	}
	c.Create(logsStudy)
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		s, err := c.Ledger.Study(ctx, "logs")
		if err != nil {
			return err
		}
		trial, err := c.Ledger.Trial(ctx, s.Study.ID, 1)
		if err == nil && trial.State != study.TrialRunning && trial.State != study.TrialClaimed {
			err = fmt.Errorf("trial 1 is %s", trial.State)
		}
		return err
	})
	want := map[fantasiav1.LogStream]string{stdout: "begun\n" + `{"fantasia": {"metrics": {"loss": 1}}}` + "\nended\n", stderr: "oops\n"}
	holds := func(what string, got map[fantasiav1.LogStream]string, err error) {
		t.Helper()
		if err != nil || got[stdout] != want[stdout] || got[stderr] != want[stderr] {
			t.Errorf("%s: %q, %v, want %q", what, got, err, want)
		}
	}
	followed, err := readers[0].readLog(&fantasiav1.TailTrialLogsRequest{Follow: true}, func(s fantasiav1.LogStream, text string) {
		if s == stdout && text == "begun\n" { // what comes later is not there yet
			if err := os.WriteFile(release, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	holds("followed to its end", followed, err)
	c.Await("logs", 1)
	for i, r := range readers {
		got, err := r.readLog(&fantasiav1.TailTrialLogsRequest{}, silent)
		holds(fmt.Sprintf("replica %d after the end", i), got, err)
	}
	last, err := readers[1].readLog(&fantasiav1.TailTrialLogsRequest{Lines: 1, Stream: stdout}, silent)
	if err != nil || len(last) != 1 || last[stdout] != "ended\n" {
		t.Errorf("the last line of stdout: %q, %v", last, err)
	}
	worker.Kill()
	testenv.Eventually(t, time.Minute, func(context.Context) error {
		_, err := readers[0].readLog(&fantasiav1.TailTrialLogsRequest{}, silent)
		if connect.CodeOf(err) != connect.CodeUnavailable ||
			!strings.Contains(err.Error(), "is gone; the log is at "+filepath.Join(dir, "worker", "trials")) {
			return fmt.Errorf("the worker is gone: %w", err)
		}
		return nil
	})
}
