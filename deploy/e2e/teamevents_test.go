//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/study"
)

// eventFiles runs a study whose program says its values only in TensorFlow's event files. That some of its trials
// are stopped early shows that values arrive while the program runs. The folder of another study is an absolute
// path, as in an Experiment of Katib.
func (g *team) eventFiles() {
	g.t.Helper()
	const steps, few = 30, 6
	g.apply("events", 4, `"--steps=6`, fmt.Sprintf(`"--report=events", "--steps=%d`, steps), "    job:",
		"    metrics: {events: logs}\n    job:",
		"budget:", "earlyStopping: {name: threshold, settings: {upper: 0.25}}\n  budget:")
	g.apply("board", 1, `"--steps=6`, fmt.Sprintf(`"--report=events", "--events=/board/run", "--steps=%d`, few), "    job:",
		"    metrics: {events: /board}\n    job:")
	for _, name := range []string{"events", "board"} {
		g.awaitStatus(4*time.Minute, name, func(s *kube.Status) bool { return s.State == study.Completed })
	}
	g.pruned("events", 0.25)
	g.recorded("events", steps)
	g.recorded("board", few)
}

// recorded checks that each completed trial of a study has the value of its event file, which is a float32, at each
// step.
func (g *team) recorded(name string, steps int) {
	g.t.Helper()
	completed := 0
	for _, trial := range g.trialsOf(name) {
		if trial.GetState() != fantasiav1.TrialState_TRIAL_STATE_COMPLETED {
			continue
		}
		completed++
		x := trial.GetParameters().GetFields()["x"].GetNumberValue()
		want := float64(float32(x * x))
		var page *connect.Response[fantasiav1.ListMeasurementsResponse]
		g.await(time.Minute, func(ctx context.Context) (err error) {
			page, err = g.home.api().ListMeasurements(ctx,
				connect.NewRequest(&fantasiav1.ListMeasurementsRequest{Parent: trial.GetName(), PageSize: 1000}))
			return err
		})
		all := page.Msg.GetMeasurements()
		if trial.GetValue() != want || len(all) != steps {
			g.t.Errorf("%s at x=%v has the value %v and %d measurements, want %v and %d", trial.GetName(), x, trial.GetValue(), len(all), want,
				steps)
		}
		for i, m := range all {
			if m.GetMetric() != "error" || m.GetStep() != int64(i+1) || m.GetValue() != want {
				g.t.Errorf("%s, measurement %d: %v, want error %v at step %d", trial.GetName(), i, m, want, i+1)
			}
		}
	}
	if completed == 0 {
		g.t.Errorf("no trial of %s has completed", name)
	}
}
