package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/testing/protocmp"

	katibv1beta1 "github.com/fantasia-hpo/fantasia/api/katib/v1beta1"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// TestKatib asks a coordinator for the suggestions of an Experiment and kills it. The command
// that serves nothing else goes on where it was.
func TestKatib(t *testing.T) {
	first, second := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	c := testcluster.Start(t, testcluster.Options{Coordinators: 1, Args: []string{"--katib-listen", first}})
	connect := func(address string) *grpc.ClientConn {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	alone := connect(second)
	// Katib waits for this probe before it calls.
	testenv.Start(t, c.Program, []string{"katib-suggestion", "--listen", second}, nil, func(ctx context.Context) error {
		_, err := healthv1.NewHealthClient(alone).Check(ctx, &healthv1.HealthCheckRequest{Service: "manager.v1beta1.Suggestion"},
			grpc.WaitForReady(true))
		return err
	})
	ask := func(conn *grpc.ClientConn, r *katibv1beta1.GetSuggestionsRequest) *katibv1beta1.GetSuggestionsReply {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // as Katib's client
		defer cancel()
		var reply katibv1beta1.GetSuggestionsReply
		if err := conn.Invoke(ctx, "/api.v1.beta1.Suggestion/GetSuggestions", r, &reply); err != nil {
			t.Fatal(err)
		}
		if got := len(reply.GetParameterAssignments()); got != int(r.GetCurrentRequestNumber()) {
			t.Fatalf("%d suggestions, want %d", got, r.GetCurrentRequestNumber())
		}
		return &reply
	}
	request := &katibv1beta1.GetSuggestionsRequest{CurrentRequestNumber: 5, TotalRequestNumber: 5, Experiment: &katibv1beta1.Experiment{
		Name: "mnist", Spec: &katibv1beta1.ExperimentSpec{
			Algorithm: &katibv1beta1.AlgorithmSpec{AlgorithmName: "fantasia"},
			Objective: &katibv1beta1.ObjectiveSpec{Type: katibv1beta1.ObjectiveType_MAXIMIZE, ObjectiveMetricName: "accuracy"},
			ParameterSpecs: &katibv1beta1.ExperimentSpec_ParameterSpecs{Parameters: []*katibv1beta1.ParameterSpec{{
				Name: "lr", ParameterType: katibv1beta1.ParameterType_DOUBLE, FeasibleSpace: &katibv1beta1.FeasibleSpace{Min: "0.01", Max: "0.1"},
			}}},
		},
	}}
	coordinator := connect(first)
	for i, p := range ask(coordinator, request).GetParameterAssignments() {
		request.Trials = append(request.Trials, &katibv1beta1.Trial{
			Name: fmt.Sprintf("mnist-%d", i),
			Spec: &katibv1beta1.TrialSpec{ParameterAssignments: &katibv1beta1.TrialSpec_ParameterAssignments{Assignments: p.GetAssignments()}},
			Status: &katibv1beta1.TrialStatus{Condition: katibv1beta1.TrialStatus_SUCCEEDED, Observation: &katibv1beta1.Observation{
				Metrics: []*katibv1beta1.Metric{{Name: "accuracy", Value: fmt.Sprintf("0.%d", 90+i)}},
			}},
		})
	}
	request.CurrentRequestNumber, request.TotalRequestNumber = 2, 7
	before := ask(coordinator, request)
	for _, p := range c.Coordinators {
		p.Kill()
	}
	if diff := cmp.Diff(before, ask(alone, request), protocmp.Transform()); diff != "" {
		t.Errorf("after the coordinator's end (-before +after):\n%s", diff)
	}
}
