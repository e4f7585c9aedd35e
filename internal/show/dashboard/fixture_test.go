package dashboard_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/dashboard"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// definition is a study file; %s is its name.
const definition = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: error, direction: minimize, goal: 0.01}
  parameters:
    - {name: rate, type: float, min: 1e-5, max: 1e-1, scale: log}
    - {name: width, type: int, min: 1, max: 256}
    - {name: dropout, type: float, min: 0, max: 0.8}
    - {name: solver, type: categorical, values: [adam, sgd, lion]}
    - {name: momentum, type: float, min: 0, max: 0.99, when: {solver: [sgd]}}
  algorithm: {name: hebo}
  budget: {maxTrials: %d}
  parallelism: 8
  trial: {command: [python, train.py, "${args}"]}
`

// epoch is when the fixture's studies began.
var epoch = servertest.Epoch

func after(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

// create makes a study with ended trials and some running ones. All of it follows from the
// seed.
func create(t testing.TB, m *servertest.Backend, name string, trials, running int) {
	t.Helper()
	if _, err := m.Create(t.Context(), fmt.Appendf(nil, definition, name, max(64, trials+running))); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, uint64(trials)))
	status := record.Status{State: study.Running, Started: epoch, Trials: trials + running, Position: int64(2*(trials+running) + 14)}
	best := math.Inf(1)
	for n := 1; n <= trials+running; n++ {
		tr := newTrial(rng, n, n > trials)
		switch tr.State {
		case study.TrialCompleted:
			status.Counts.Completed++
			if v := tr.Values.First(); v < best {
				best, status.Best = v, n
			}
		case study.TrialFailed:
			status.Counts.Failed++
		case study.TrialPruned:
			status.Counts.Pruned++
		default:
			status.Counts.Running++
		}
		m.Put(name, tr)
		if n > trials-40 {
			m.PutMeasurements(name, measured(rng, &tr))
		}
	}
	bestTrial, err := m.Trial(t.Context(), name, status.Best)
	if err != nil {
		t.Fatal(err)
	}
	m.Change(name, func(s *server.Study) {
		s.Status, s.Best = status, &bestTrial
		s.Recommended = &optimizer.Recommendation{Trial: max(1, status.Best-1), Mean: best * 1.1, SD: best / 10, Point: bestTrial.Point}
	})
}

// errorOf is the objective of the fixture.
func errorOf(p study.Point) float64 {
	x, y := math.Log10(p["rate"].(float64))+3, float64(p["width"].(int64))/256
	v := 0.05 + 0.04*x*x + 0.2*(y-0.7)*(y-0.7) + 0.05*p["dropout"].(float64)
	if p["solver"] == "sgd" {
		v += 0.03 + 0.05*(0.9-p["momentum"].(float64))
	}
	return v
}

func newTrial(rng *rand.Rand, n int, running bool) record.Trial {
	p := study.Point{"rate": math.Pow(10, -5+4*rng.Float64()), "width": 1 + rng.Int64N(256), "dropout": 0.8 * rng.Float64(),
		"solver": []string{"adam", "sgd", "lion"}[rng.IntN(3)]}
	if p["solver"] == "sgd" {
		p["momentum"] = 0.99 * rng.Float64()
	}
	start := float64(n/8)*12 + float64(n%8)
	mean, sd := errorOf(p), 0.02
	tr := record.Trial{
		Number: n, State: study.TrialCompleted, Point: p, Source: optimizer.SourceModel, Staleness: n % 5, Created: int64(2*n - 1),
		Ended: int64(2*n + 14), From: int64(max(0, 2*n-3)), Request: n,
		Reasons: optimizer.Reasons{Mean: &mean, SD: &sd, Acquisition: map[string]float64{"logei": -2.5}, Pending: 7,
			Note: "expected improvement"},
		Attempts: []record.Attempt{{Number: 1, Nonce: "n", State: study.AttemptSucceeded, Worker: fmt.Sprintf("worker-%d", n%4),
			Opened: after(start), Claimed: after(start + 0.2), Started: after(start + 0.3), Ended: after(start + 8 + 3*rng.Float64()),
			Logs: "/var/lib/fantasia/" + fmt.Sprint(n), Site: &messaging.Site{Job: "4711_" + fmt.Sprint(n), Node: "n17"}}},
		TraceID: "0af7651916cd43dd8448eb211c80319c",
	}
	if n <= 10 {
		tr.Source = optimizer.SourceDesign
	}
	a := &tr.Attempts[0]
	tr.Times = record.Times{Asked: after(start - 0.4), Suggested: after(start - 0.1), Created: a.Opened, Claimed: a.Claimed,
		Started: a.Started, Ended: a.Ended, Folded: a.Ended.Add(20 * time.Millisecond)}
	switch {
	case running:
		tr.State, tr.Ended, a.State, a.Ended = study.TrialRunning, 0, study.AttemptOpen, time.Time{}
		tr.Times.Ended, tr.Times.Folded = time.Time{}, time.Time{}
	case n%17 == 0:
		code := 1
		tr.State, a.State = study.TrialFailed, study.AttemptFailed
		a.Failure = &messaging.Failure{Reason: "exit", ExitCode: &code,
			Message: "exit code 1; see the log\nIts last words:\nValueError: <b>loss</b> is not finite"}
	case n%11 == 0:
		tr.State, a.State = study.TrialPruned, study.AttemptPruned
		tr.Values = study.Values{mean + 0.1}
		tr.Stopped = &record.Stopped{Attempt: 1, Step: 6, Values: tr.Values, Reason: "worse than the median of 12 trials", At: a.Ended}
	default:
		tr.Values = study.Values{mean + 0.01*rng.NormFloat64()}
		tr.Metrics = map[string]float64{"error": tr.Values.First(), "seconds": 9}
	}
	return tr
}

func measured(rng *rand.Rand, tr *record.Trial) curve.Reported {
	s := curve.Series{Metric: "error"}
	end := errorOf(tr.Point)
	for step := range 12 {
		if tr.State != study.TrialCompleted && step > 6 {
			break
		}
		s.Points = append(s.Points, curve.Point{Step: int64(step), Value: end + math.Exp(-float64(step)/3) + 0.01*rng.NormFloat64()})
	}
	return curve.Reported{Trial: tr.Number, Attempt: 1, Series: []curve.Series{s}}
}

// following is a backend whose logs of running trials go on until nobody follows them.
type following struct{ *servertest.Backend }

// TailLogs implements server.Backend.
func (f following) TailLogs(ctx context.Context, name string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error] {
	return func(yield func(coordinator.LogPart, error) bool) {
		for p, err := range f.Backend.TailLogs(ctx, name, number, o) {
			if !yield(p, err) || err != nil {
				return
			}
		}
		if o.Follow {
			<-ctx.Done()
			yield(coordinator.LogPart{}, ctx.Err())
		}
	}
}

// site is a served dashboard.
type site struct {
	*servertest.Backend
	*httptest.Server
	d *dashboard.Dashboard
}

// serve serves a dashboard over a backend in memory, whose clock stands still.
func serve(t testing.TB, now time.Time, tokens string) *site {
	t.Helper()
	if tokens == "" {
		return serveTo(t, now, nil)
	}
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := server.ReadTokens(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return serveTo(t, now, read)
}

// serveTo serves a dashboard to the bearers of tokens; nil is everybody.
func serveTo(t testing.TB, now time.Time, tokens server.Bearers) *site {
	t.Helper()
	m := servertest.New(t)
	o := server.Options{Tokens: tokens}
	_, api, err := server.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	draining := make(chan struct{})
	d := dashboard.New(following{m}, dashboard.Options{API: api, Tokens: o.Tokens, Draining: draining, Now: func() time.Time { return now }})
	mux := http.NewServeMux()
	mux.Handle(dashboard.Path, d)
	s := &site{m, httptest.NewServer(mux), d}
	t.Cleanup(func() {
		close(draining)
		s.Server.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func workers(m *servertest.Backend, id string) {
	var list []coordinator.Worker
	for i := range 4 {
		list = append(list, coordinator.Worker{Seen: after(60), Heartbeat: messaging.Heartbeat{
			Worker: fmt.Sprintf("worker-%d", i), Pool: "default", Slots: 2, Free: i % 2, Host: "node-" + fmt.Sprint(i), Software: "fantasia 1.0.0",
			StudyCommands: true,
			Running:       []messaging.AttemptID{{Study: id, Trial: 101 + i, Attempt: 1}},
		}})
	}
	m.SetWorkers(list...)
}
