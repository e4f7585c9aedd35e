package servertest

import (
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// Stopping is the name of the study that PutStopping makes.
const Stopping = "bowl"

// PutStopping makes a study whose 16 trials have ended, the last two of them by early stopping. The best place is x = 0.3, and the
// loss after step s is (x − 0.3)² + 0.5/s. Trial 15 was stopped too early, after 12 of 20 steps: it is near the best place. Trial 16
// is far from it and was stopped after 8. The study is in the given state.
func PutStopping(t testing.TB, b *Backend, state study.State) {
	t.Helper()
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
	after := func(minutes int) time.Time { return Epoch.Add(time.Duration(minutes) * time.Minute) }
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
		b.Put(Stopping, tr)
		b.PutMeasurements(Stopping, curve.Reported{Trial: n, Attempt: 1, Series: []curve.Series{c}})
	}
	best, err := b.Trial(t.Context(), Stopping, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.Change(Stopping, func(s *server.Study) {
		s.Status = record.Status{State: state, Started: Epoch, Trials: 16, Position: 200, Best: 1,
			Counts: record.Counts{Completed: 14, Pruned: 2}}
		s.Best = &best
	})
}
