package cli_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// study get of a study that has ended offers to finish the trial that was stopped too early: it is near the best place, 0.3, where
// the loss after step s is (x − 0.3)² + 0.5/s. While the study runs, it offers nothing.
func TestStudyGetOffersToFinish(t *testing.T) {
	b := servertest.New(t)
	if _, err := b.Create(t.Context(), []byte(`apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: bowl}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  budget: {maxTrials: 16}
  earlyStopping: {name: model}
  trial: {command: [train]}
`)); err != nil {
		t.Fatal(err)
	}
	after := func(minutes int) time.Time { return servertest.Epoch.Add(time.Duration(minutes) * time.Minute) }
	for n := 1; n <= 16; n++ {
		x, steps := 0.5+float64(n-1)/28, 20
		switch n {
		case 15:
			x, steps = 0.31, 12
		case 16:
			x, steps = 0.95, 8
		}
		c := curve.Series{Metric: "loss"}
		for step := 1; step <= steps; step++ {
			c.Points = append(c.Points, curve.Point{Step: int64(step), Value: (x-0.3)*(x-0.3) + 0.5/float64(step)})
		}
		tr := record.Trial{
			Number: n, State: study.TrialCompleted, Point: study.Point{"x": x}, Created: int64(2*n - 1), Ended: int64(100 + 2*n),
			Values: study.Values{c.Points[steps-1].Value},
			Times:  record.Times{Created: after(n), Started: after(n), Ended: after(n + steps), Folded: after(n + steps)},
		}
		if steps < 20 {
			tr.State, tr.Stopped = study.TrialPruned, &record.Stopped{Attempt: 1, Step: int64(steps), Values: tr.Values, At: tr.Times.Ended}
		}
		b.Put("bowl", tr)
		b.PutMeasurements("bowl", curve.Reported{Trial: n, Attempt: 1, Series: []curve.Series{c}})
	}
	url, stop := serveOn(t, "127.0.0.1:0", b)
	defer stop()
	offer := regexp.MustCompile(`(?m)^Unfinished: +trial 15, stopped at step 12, is expected to end at 0\.0\d+, ` +
		`better than 0\.065: raise the budget, then fantasia trial continue bowl 15$`)
	for _, state := range []study.State{study.Running, study.Completed} {
		b.Change("bowl", func(s *server.Study) {
			s.Status = record.Status{State: state, Started: servertest.Epoch, Trials: 16, Position: 200, Best: 1,
				Counts: record.Counts{Completed: 14, Pruned: 2}}
		})
		run := start(t.Context(), "study", "get", "bowl", "--server", url)
		if code := <-run.code; code != cli.ExitOK || offer.MatchString(run.out.String()) != state.Terminal() {
			t.Errorf("%s: exit code %d: %s%s", state, code, run.out, run.errs)
		}
	}
}
