package server_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
)

// consenting agrees to whatever clients say.
type consenting struct{}

func (consenting) Suggest(context.Context, string, string, int, time.Duration) (coordinator.Suggestions, error) {
	return coordinator.Suggestions{}, nil
}

func (consenting) Heartbeat(context.Context, string, string, []coordinator.HeldAttempt) ([]engine.Instruction, error) {
	return nil, nil
}

func (consenting) Measure(context.Context, string, string, coordinator.HeldAttempt, []coordinator.Report) (engine.Instruction, error) {
	return engine.Instruction{}, nil
}

func (consenting) Tell(context.Context, string, func(time.Time) engine.Event) (record.Trial, error) {
	return record.Trial{}, nil
}

// calling is a call of one procedure for a study, given by its name or id.
type calling = func(ctx context.Context, c client, study, name string) error

// clientCalls returns the calls of those who evaluate trials themselves, by procedure.
// All of them write.
var clientCalls = map[string]calling{
	"SuggestTrials": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.SuggestTrials(ctx, connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/" + study, ClientId: "a"}))
		return err
	},
	"HeartbeatTrials": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.HeartbeatTrials(ctx,
			connect.NewRequest(&fantasiav1.HeartbeatTrialsRequest{Parent: "studies/" + study, ClientId: "a", Trials: []int32{1}}))
		return err
	},
	"AddMeasurement": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.AddMeasurement(ctx, connect.NewRequest(&fantasiav1.AddMeasurementRequest{
			Name: "studies/" + study + "/trials/1", ClientId: "a", Metrics: map[string]float64{"error": 1},
		}))
		return err
	},
	"CompleteTrial": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.CompleteTrial(ctx,
			connect.NewRequest(&fantasiav1.CompleteTrialRequest{Name: "studies/" + study + "/trials/1", ClientId: "a", Values: []float64{1}}))
		return err
	},
	"FailTrial": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.FailTrial(ctx, connect.NewRequest(&fantasiav1.FailTrialRequest{Name: "studies/" + study + "/trials/1", ClientId: "a"}))
		return err
	},
	"ReleaseTrial": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.ReleaseTrial(ctx, connect.NewRequest(&fantasiav1.ReleaseTrialRequest{Name: "studies/" + study + "/trials/1", ClientId: "a"}))
		return err
	},
	"EnqueueTrial": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.EnqueueTrial(ctx,
			connect.NewRequest(&fantasiav1.EnqueueTrialRequest{Parent: "studies/" + study, Parameters: &structpb.Struct{}}))
		return err
	},
	"AddTrial": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.AddTrial(ctx,
			connect.NewRequest(&fantasiav1.AddTrialRequest{Parent: "studies/" + study, Parameters: &structpb.Struct{}, Values: []float64{1}}))
		return err
	},
	"EditTrial": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.EditTrial(ctx, connect.NewRequest(&fantasiav1.EditTrialRequest{Name: "studies/" + study + "/trials/1"}))
		return err
	},
	"CancelTrial": func(ctx context.Context, c client, study, _ string) error {
		_, err := c.CancelTrial(ctx, connect.NewRequest(&fantasiav1.CancelTrialRequest{Name: "studies/" + study + "/trials/1"}))
		return err
	},
}

// Each token lets clients take and tell the trials of exactly the studies that it may
// write.
func TestTokensOfClients(t *testing.T) {
	all, _ := tokens(t, "reader "+digest("reader")+" read", "writer "+digest("writer")+" write",
		"team "+digest("team")+" write team-", "guest "+digest("guest")+" read team-")
	for _, test := range []struct {
		token, study string
		want         connect.Code // 0 is success
	}{
		{"", "team-a", connect.CodeUnauthenticated},
		{"somebody's", "team-a", connect.CodeUnauthenticated},
		{"reader", "team-a", connect.CodePermissionDenied},
		{"guest", "team-a", connect.CodePermissionDenied},
		{"writer", "other", 0},
		{"team", "team-a", 0},
		{"team", "other", connect.CodeNotFound},
	} {
		backend := struct {
			*servertest.Backend
			consenting
		}{Backend: servertest.New(t)}
		id := create(t, backend.Backend, test.study).Spec.ID
		c := bear(t, serve(t, backend, server.Options{Tokens: all}), "connect", test.token)
		for procedure, call := range clientCalls {
			for _, study := range []string{test.study, id} {
				check(t, call(within(t), c, study, test.study), test.want, "%s of %s as %q", procedure, study, test.token)
			}
		}
	}
}

// The tests of tokens call every procedure of the API. The lists of all studies and workers
// have tests of their own, such as TestTokensLimitLists.
func TestTokensCoverEveryProcedure(t *testing.T) {
	tested := map[string]bool{"ListStudies": true, "ListArchivedStudies": true, "ListWorkers": true, "ListQuotas": true}
	for _, call := range calls {
		tested[call.name] = true
	}
	for name := range clientCalls {
		tested[name] = true
	}
	methods := fantasiav1.File_fantasia_v1_fantasia_proto.Services().ByName("StudyService").Methods()
	for i := range methods.Len() {
		if name := string(methods.Get(i).Name()); !tested[name] {
			t.Errorf("no test calls %s with a token", name)
		}
	}
}
