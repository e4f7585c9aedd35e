package server_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// template is a study file; %s is its name.
const template = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: NAME}
spec:
  objective: {metric: error, direction: minimize, goal: 0.01}
  parameters:
    - {name: lr, type: float, min: 1e-5, max: 1e-1, scale: log}
    - {name: width, type: int, min: 1, max: 256}
  algorithm: {name: random}
  budget: {maxTrials: 64}
  parallelism: 8
  trial: {command: [python, train.py, "${args}"]}
`

func named(name string) string { return strings.Replace(template, "NAME", name, 1) }

// client is a client of the API, with a transport that ends with the test.
type client = fantasiav1connect.StudyServiceClient

// protocols are the wire protocols that one port speaks.
var protocols = map[string]struct {
	h2      bool
	options []connect.ClientOption
}{
	"connect":  {false, nil},
	"json":     {false, []connect.ClientOption{connect.WithProtoJSON()}},
	"json-get": {false, []connect.ClientOption{connect.WithProtoJSON(), connect.WithHTTPGet()}},
	"grpc":     {true, []connect.ClientOption{connect.WithGRPC()}},
	"grpc-web": {false, []connect.ClientOption{connect.WithGRPCWeb()}},
}

// serve serves the backend until the test ends and returns its address.
func serve(t *testing.T, b server.Backend, o server.Options) string {
	t.Helper()
	address, stop := start(t, listen(t), b, o)
	t.Cleanup(stop)
	return address
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// start serves the backend until stop is called, which waits for the end.
func start(t *testing.T, listener net.Listener, b server.Backend, o server.Options) (address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o.Draining = ctx.Done()
	path, handler, err := server.New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	served := make(chan error, 1)
	go func() {
		served <- httpserve.Serve(ctx, listener, mux, slog.New(slog.DiscardHandler))
	}()
	return listener.Addr().String(), func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

// dial makes a client that speaks one of the protocols.
func dial(t *testing.T, address, protocol string) client {
	t.Helper()
	p := protocols[protocol]
	var speaks http.Protocols
	speaks.SetHTTP1(!p.h2)
	speaks.SetUnencryptedHTTP2(p.h2)
	transport := &http.Transport{Protocols: &speaks}
	t.Cleanup(transport.CloseIdleConnections)
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: transport}, "http://"+address, p.options...)
}

// within is a context that ends a test that hangs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// create puts a study straight into the backend.
func create(t *testing.T, m *servertest.Backend, name string) server.Study {
	t.Helper()
	s, err := m.Create(t.Context(), []byte(named(name)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ptr[T any](v T) *T { return &v }

// evaluated is a trial with two attempts: the first was lost, the second answered.
func evaluated(number int, value float64) record.Trial {
	at := func(seconds int) time.Time { return servertest.Epoch.Add(time.Duration(seconds) * time.Second) }
	return record.Trial{
		Number: number, State: study.TrialCompleted,
		Point:  study.Point{"lr": 0.001, "width": int64(64), "bias": true, "solver": "adam"},
		Source: optimizer.SourceModel,
		Reasons: optimizer.Reasons{
			Mean: ptr(0.25), SD: ptr(0.125), Acquisition: map[string]float64{"logei": -3}, Pending: 7, Note: "logei",
		},
		Staleness: 3, Created: 9, Ended: 12,
		Attempts: []record.Attempt{
			{
				Number: 1, Nonce: "n1", State: study.AttemptLost, Worker: "w1", Opened: at(1), Claimed: at(2), Ended: at(20),
				Failure: &messaging.Failure{Reason: "lost", Message: "worker w1 has been silent for 18s"},
			},
			{
				Number: 2, Nonce: "n2", State: study.AttemptSucceeded, Worker: "w2", Opened: at(20), Claimed: at(21),
				Started: at(22), Ended: at(30), Outcome: messaging.OutcomeCompleted, Logs: "/var/w2/7/2",
				Stages: &messaging.Stages{Created: at(23), Scheduled: at(23), Started: at(25), Ended: at(29)},
			},
		},
		Values: []float64{value}, Metrics: map[string]float64{"error": value, "seconds": 8},
		TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331",
		Times: record.Times{Asked: at(0), Suggested: at(1), Created: at(1), Claimed: at(21), Started: at(22), Ended: at(30), Folded: at(31)},
	}
}
