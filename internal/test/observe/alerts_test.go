//go:build e2e

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// TestAlertsFire causes what alerts are for and sees a real Prometheus fire them: a worker that is
// killed, a study whose trials all fail, and coordinators that are all killed. Where the cause goes,
// so does the alert.
func TestAlertsFire(t *testing.T) {
	in := install(t, newReceiver(t).url, 2)
	// A cause need not last ten minutes: how long it has to is promtool's to test.
	server := prometheus(t, in.targets(), regexp.MustCompile(`for: \d+m`).ReplaceAllString(readFile(t, rulesFile), "for: 5s"))
	in.create("digits", 1000)
	in.await("digits", 20)
	causes := []string{"FantasiaPoolWithoutWorkers", "FantasiaAttemptsLost", "FantasiaTrialsFail", "FantasiaNoLeader"}
	for _, alert := range firing(t, server) {
		if slices.Contains(causes, alert.Labels["alertname"]) {
			t.Errorf("while all is well, %v fires", alert)
		}
	}

	// A worker loses up to two attempts with each of its deaths, and the alert needs four.
	for range 3 {
		before, _ := in.Await("digits", 0)
		in.await("digits", before.Status.Counts.Ended()+4)
		in.worker.Kill()
		fires(t, server, "FantasiaPoolWithoutWorkers", "fantasia_pool", "default")
		in.worker.Restart()
		ceases(t, server, "FantasiaPoolWithoutWorkers")
	}
	fires(t, server, "FantasiaAttemptsLost", "fantasia_study_name", "digits")

	in.Create(hopeless)
	fires(t, server, "FantasiaTrialsFail", "fantasia_study_name", "hopeless")

	for _, p := range in.Coordinators {
		p.Kill()
	}
	fires(t, server, "FantasiaNoLeader", "severity", "critical")
	for _, p := range in.Coordinators {
		p.Restart()
	}
	ceases(t, server, "FantasiaNoLeader")
}

// hopeless is a study of digits whose trials after the first fail at once: momentum is to be below 1.
// A study whose first trials all failed would end by itself.
const hopeless = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: hopeless}
spec:
  objective: {metric: error, direction: minimize}
  parameters:
    - {name: learning_rate, type: float, min: 1e-3, max: 1, scale: log}
    - {name: momentum, type: float, min: 0.5, max: 50}
  initial: [{learning_rate: 0.1, momentum: 0.5}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: 12}
  parallelism: 1
  trial: {command: [unused]}
`

// alert is one of Prometheus' list.
type alert struct {
	State               string
	Labels, Annotations map[string]string
}

// alerts returns those that are pending or firing.
func alerts(ctx context.Context, server string) ([]alert, error) {
	body, err := get(ctx, server+"/api/v1/alerts", "application/json")
	if err != nil {
		return nil, err
	}
	var answer struct{ Data struct{ Alerts []alert } }
	err = json.Unmarshal([]byte(body), &answer)
	return answer.Data.Alerts, err
}

func firing(t *testing.T, server string) []alert {
	t.Helper()
	all, err := alerts(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(a alert) bool { return a.State != "firing" })
}

// fires waits until an alert with a label fires, and logs its texts.
func fires(t *testing.T, server, name, label, value string) {
	t.Helper()
	began := time.Now()
	testenv.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		all, err := alerts(ctx, server)
		if err != nil {
			return err
		}
		for _, a := range all {
			if a.State != "firing" || a.Labels["alertname"] != name || a.Labels[label] != value {
				continue
			}
			t.Logf("%s fires %.0f s after its cause: %s. %s", name, time.Since(began).Seconds(),
				a.Annotations["summary"], a.Annotations["description"])
			return nil
		}
		return fmt.Errorf("%s does not fire for the %s %s: %v", name, label, value, all)
	})
}

// ceases waits until an alert neither fires nor is about to.
func ceases(t *testing.T, server, name string) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		all, err := alerts(ctx, server)
		if i := slices.IndexFunc(all, func(a alert) bool { return a.Labels["alertname"] == name }); err == nil && i >= 0 {
			err = fmt.Errorf("%s is still %s", name, all[i].State)
		}
		return err
	})
}
