package cli_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
	"github.com/fantasia-hpo/fantasia/study"
)

// The test's binary acts as fantasia when a script runs it.
func TestMain(m *testing.M) {
	program := func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		code := cli.Main(ctx, os.Args[1:], cli.Options{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: "1.2.3", Plugin: cli.IsPlugin(os.Args[0]),
		})
		stop()
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"fantasia": program, "kubectl-fantasia": program})
}

// TestScripts runs the command line against a server in memory that holds a running
// study "digits" and a failed study "broken".
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			backend := backend(t)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return fmt.Errorf("listen: %w", err)
			}
			vote := &election{refused: make(chan struct{}, 100)}
			stop, err := serve(listener, stored{backend, vote}, vote.leader)
			if err != nil {
				return err
			}
			env.Defer(stop)
			// The race detector delays the exit of each process by a second.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("FANTASIA_SERVER", "http://"+listener.Addr().String())
			env.Values["backend"], env.Values["election"] = backend, vote
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "complete": complete, "evaluate": evaluate, "depose": depose, "elect": elect, "lose": lose, "resource": resource,
		},
	})
}

// exits CODE PROGRAM ARGS… runs a program that must exit with the code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d; want %d", got, want)
	}
}

// complete STUDY ends a study as completed.
func complete(ts *testscript.TestScript, neg bool, args []string) {
	backend, ok := ts.Value("backend").(*servertest.Backend)
	if neg || !ok || len(args) != 1 {
		ts.Fatalf("usage: complete STUDY")
	}
	backend.Change(args[0], func(s *server.Study) {
		s.Status.State, s.Status.Ended = study.Completed, servertest.Epoch.Add(2*time.Minute)
	})
}

// evaluate STUDY N adds completed trials to a study, up to number N. The error is the
// distance of log(lr) from -3; width has no effect.
func evaluate(ts *testscript.TestScript, neg bool, args []string) {
	backend, ok := ts.Value("backend").(*servertest.Backend)
	if neg || !ok || len(args) != 2 {
		ts.Fatalf("usage: evaluate STUDY N")
	}
	last, err := strconv.Atoi(args[1])
	ts.Check(err)
	sequence, err := design.NewSobol(2)
	ts.Check(err)
	u := make([]float64, 2)
	for n := 4; n <= last; n++ {
		sequence.At(u, uint32(n))
		exponent := -5 + 4*u[0]
		value := math.Abs(exponent + 3)
		backend.Put(args[0], record.Trial{
			Number: n, State: study.TrialCompleted, Values: []float64{value},
			Point: study.Point{"lr": math.Pow(10, exponent), "width": 1 + int64(255*u[1])},
		})
	}
	backend.Change(args[0], func(s *server.Study) { s.Status.Counts.Completed = last })
}

// resource NAMESPACE.NAME makes the study of a Kubernetes resource, with a trial and its
// log.
func resource(ts *testscript.TestScript, neg bool, args []string) {
	backend, ok := ts.Value("backend").(*servertest.Backend)
	if neg || !ok || len(args) != 1 {
		ts.Fatalf("usage: resource NAMESPACE.NAME")
	}
	_, err := backend.CreateAs(context.Background(), args[0], []byte(strings.Replace(file, "NAME", "resource", 1)))
	ts.Check(err)
	backend.Put(args[0], record.Trial{
		Number: 1, State: study.TrialCompleted, Values: []float64{0.5}, Point: study.Point{"lr": 1e-3, "width": int64(64)},
		Attempts: []record.Attempt{{Number: 1, State: study.AttemptSucceeded, Worker: "w1"}},
	})
	backend.PutLog(args[0], 1, coordinator.LogPart{Attempt: 1, Stream: messaging.LogStdout, Data: []byte("epoch 1\n")})
}

// election decides whether the server's only replica leads.
type election struct {
	deposed atomic.Bool
	away    atomic.Bool   // etcd does not answer
	refused chan struct{} // gets a value for each request that found no leader
}

func (e *election) leader(context.Context) (address string, self bool, err error) {
	if e.away.Load() {
		return "", false, errEtcdAway
	}
	if e.deposed.Load() {
		e.refused <- struct{}{}
		return "", false, errors.New("nobody is elected")
	}
	return "", true, nil
}

// depose leaves the server without a leader.
func depose(ts *testscript.TestScript, _ bool, _ []string) {
	vote, ok := ts.Value("election").(*election)
	if !ok {
		ts.Fatalf("no election")
	}
	vote.deposed.Store(true)
}

// elect waits for a request that finds no leader, and elects one.
func elect(ts *testscript.TestScript, _ bool, _ []string) {
	vote, ok := ts.Value("election").(*election)
	if !ok {
		ts.Fatalf("no election")
	}
	<-vote.refused
	vote.deposed.Store(false)
}

// lose takes the server's etcd away.
func lose(ts *testscript.TestScript, _ bool, _ []string) {
	vote, ok := ts.Value("election").(*election)
	if !ok {
		ts.Fatalf("no election")
	}
	vote.away.Store(true)
}

var errEtcdAway = fmt.Errorf("%w: etcd at http://localhost:2379 does not answer", study.ErrAway)

// stored is a backend whose etcd may be away.
type stored struct {
	server.Backend
	vote *election
}

// Study implements server.Backend.
func (b stored) Study(ctx context.Context, nameOrID string) (server.Study, error) {
	if b.vote.away.Load() {
		return server.Study{}, errEtcdAway
	}
	return b.Backend.Study(ctx, nameOrID)
}

// serve serves the backend until stop is called.
func serve(listener net.Listener, b server.Backend, leader server.Leader) (stop func(), err error) {
	now := func() time.Time { return servertest.Epoch.Add(90 * time.Second) }
	ctx, cancel := context.WithCancel(context.Background())
	path, handler, err := server.New(b, server.Options{Now: now, Leader: leader, Draining: ctx.Done()})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("make the server: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = httpserve.Serve(ctx, listener, mux, slog.New(slog.DiscardHandler))
	}()
	return func() { cancel(); <-served }, nil
}

const file = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: NAME}
spec:
  objective: {metric: error, direction: minimize}
  parameters:
    - {name: lr, type: float, min: 1e-5, max: 1e-1, scale: log}
    - {name: width, type: int, min: 1, max: 256}
  algorithm: {name: random}
  budget: {maxTrials: 64}
  parallelism: 8
  trial: {command: [python, train.py, "${args}"]}
`

// backend returns the studies that the scripts use.
func backend(t testing.TB) *servertest.Backend {
	t.Helper()
	b := servertest.New(t)
	for _, name := range []string{"digits", "broken"} {
		if _, err := b.Create(context.Background(), []byte(strings.Replace(file, "NAME", name, 1))); err != nil {
			t.Fatal(err)
		}
	}
	at := func(seconds int) time.Time { return servertest.Epoch.Add(time.Duration(seconds) * time.Second) }
	value, mean, sd, code := 0.03125, 0.04, 0.0025, 1
	best := record.Trial{
		Number: 1, State: study.TrialCompleted, Point: study.Point{"lr": 1e-3, "width": int64(64)},
		Source: optimizer.SourceModel, Staleness: 3,
		Reasons: optimizer.Reasons{Mean: &mean, SD: &sd, Pending: 7, Note: "the highest expected improvement"},
		Attempts: []record.Attempt{
			{Number: 1, State: study.AttemptHandedBack, Worker: "w1", Opened: at(0), Claimed: at(1), Logs: "w1:/trials/1/1"},
			{Number: 2, State: study.AttemptSucceeded, Worker: "w2", Opened: at(2), Started: at(3), Ended: at(11), Logs: "w2:/trials/1/2",
				Site: &messaging.Site{Job: "4711_2", Node: "n17", Devices: "0,1"},
				Stages: &messaging.Stages{Created: at(3).Add(90 * time.Millisecond), Scheduled: at(4), Prepared: at(4),
					Started: at(7), Ended: at(9)}},
		},
		Values: []float64{value}, Metrics: map[string]float64{"error": value}, TraceID: "0af7651916cd43dd8448eb211c80319c",
		Times: record.Times{Suggested: at(0), Claimed: at(2), Started: at(3), Ended: at(11), Folded: at(11)},
	}
	b.Put("digits", best)
	learning := curve.Series{Metric: "error"}
	for step := range int64(40) {
		learning.Points = append(learning.Points, curve.Point{Step: step, Value: 0.03125 + 0.5*math.Exp(-float64(step)/8)})
	}
	b.PutMeasurements("digits", curve.Reported{Trial: 1, Attempt: 2, Series: []curve.Series{
		learning, {Metric: "lr", Points: []curve.Point{{Step: 3, Value: 0.001}}},
	}})
	b.Put("digits", record.Trial{
		Number: 2, State: study.TrialFailed, Point: study.Point{"lr": 0.1, "width": int64(8)}, Source: optimizer.SourceDesign,
		Attempts: []record.Attempt{{
			Number: 1, State: study.AttemptFailed, Worker: "w2", Started: at(4), Ended: at(5), Logs: "w2:/trials/2/1",
			Failure: &messaging.Failure{Reason: "exit", ExitCode: &code, Message: "Traceback (most recent call last):\nMemoryError"},
		}},
		Times: record.Times{Suggested: at(0), Started: at(4), Ended: at(5)},
	})
	b.Put("digits", record.Trial{
		Number: 3, State: study.TrialQueued, Point: study.Point{"lr": 1e-5, "width": int64(256)}, Source: optimizer.SourceFallback,
		Attempts: []record.Attempt{{Number: 1, State: study.AttemptOpen}},
	})
	for _, p := range []coordinator.LogPart{
		{Attempt: 1, Stream: messaging.LogStdout, Data: []byte("the first attempt\n")},
		{Attempt: 2, Stream: messaging.LogStdout, Data: []byte("epoch 1\nepo")},
		{Attempt: 2, Stream: messaging.LogStderr, Data: []byte("a warning\n")},
		{Attempt: 2, Stream: messaging.LogStdout, Data: []byte("ch 2\n")},
	} {
		b.PutLog("digits", 1, p)
	}
	b.Change("digits", func(s *server.Study) {
		s.Best = &best
		s.Recommended = &optimizer.Recommendation{Trial: 1, Mean: mean, SD: sd, Point: best.Point}
		s.Status.Counts = record.Counts{Queued: 1, Completed: 1, Failed: 1}
	})
	b.Change("broken", func(s *server.Study) {
		s.Status.State, s.Status.Ended = study.Failed, at(30)
		s.Status.Reason = "the first three trials failed"
		s.Status.Counts.Failed = 3
	})
	b.SetWorkers(
		coordinator.Worker{Seen: at(89), Heartbeat: messaging.Heartbeat{Worker: "w1", Pool: "gpu", Slots: 2, Free: 2, Leaving: true}},
		coordinator.Worker{Seen: at(89), Heartbeat: messaging.Heartbeat{
			Worker: "w2", Pool: "default", Slots: 4, Free: 3, Host: "node-2", Software: "fantasia 1.2.3", StudyCommands: true,
			Runs:    messaging.RunsCommand,
			Running: []messaging.AttemptID{{Study: "ID1", Trial: 3, Attempt: 1}},
		}},
		coordinator.Worker{Seen: at(89),
			Heartbeat: messaging.Heartbeat{Worker: "w3", Pool: "jobs", Slots: 2, Free: 2, OwnCommand: true, Runs: messaging.RunsJobs}})
	return b
}
