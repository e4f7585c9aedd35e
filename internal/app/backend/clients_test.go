package backend

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// commandless is a study whose trials clients ask for.
const commandless = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: mine}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: random}
  budget: {maxTrials: 6}
`

// serveAPI serves the API of a leader over an etcd in memory and a NATS of its own, and returns a
// client of it.
func serveAPI(t *testing.T, lease time.Duration) (*replica, fantasiav1connect.StudyServiceClient) {
	t.Helper()
	nats, err := embedded.StartNATS(embedded.NATSOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(natsbus.ConnectOptions("coordinator")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the replica's
		conn.Close()
		if err := nats.Close(); err != nil {
			t.Error(err)
		}
	})
	bus, err := natsbus.NewLeader(conn, natsbus.LeaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	r := newReplica(t, 10*time.Second, func(o *coordinator.Options) { o.Bus, o.WorkerLease = bus, lease })
	path, handler, err := server.New(r.Backend, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return r, fantasiav1connect.NewStudyServiceClient(s.Client(), s.URL)
}

// Clients evaluate a study without a command by calls of the API alone.
func TestClientsOfTheAPI(t *testing.T) {
	const lease, parent = 2 * time.Second, "studies/mine"
	r, c := serveAPI(t, lease)
	suggest := func(client string) *fantasiav1.SuggestTrialsResponse {
		t.Helper()
		got, err := c.SuggestTrials(r.ctx,
			connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: parent, ClientId: client, Wait: durationpb.New(10 * time.Second)}))
		if err != nil {
			t.Fatal(err)
		}
		return got.Msg
	}
	// given asks for one trial and checks that it is the one with a number.
	given := func(client string, number int32) *fantasiav1.Trial {
		t.Helper()
		got := suggest(client)
		if len(got.GetTrials()) != 1 || got.GetTrials()[0].GetNumber() != number || got.GetLease().AsDuration() != lease {
			t.Fatalf("%s asked, got %v, want trial %d", client, got, number)
		}
		return got.GetTrials()[0]
	}
	complete := func(client string, m *fantasiav1.Trial, value float64) (*fantasiav1.Trial, error) {
		got, err := c.CompleteTrial(r.ctx,
			connect.NewRequest(&fantasiav1.CompleteTrialRequest{Name: m.GetName(), ClientId: client, Values: []float64{value}}))
		if err != nil {
			return nil, err
		}
		return got.Msg.GetTrial(), nil
	}
	heartbeat := func(client string, number int32) fantasiav1.TrialAction {
		t.Helper()
		got, err := c.HeartbeatTrials(r.ctx,
			connect.NewRequest(&fantasiav1.HeartbeatTrialsRequest{Parent: parent, ClientId: client, Trials: []int32{number}}))
		if err != nil || len(got.Msg.GetInstructions()) != 1 || got.Msg.GetInstructions()[0].GetTrial() != number {
			t.Fatalf("heartbeat of %s: %v, %v", client, got, err)
		}
		return got.Msg.GetInstructions()[0].GetAction()
	}
	refused := func(err error, code connect.Code, words ...string) {
		t.Helper()
		if connect.CodeOf(err) != code {
			t.Errorf("got %v, want code %v", err, code)
			return
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the error %q does not say %q", err, word)
			}
		}
	}
	x := func(v float64) *structpb.Struct {
		return &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewNumberValue(v)}}
	}

	if _, err := c.CreateStudy(r.ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: commandless})); err != nil {
		t.Fatal(err)
	}

	// Trial 1: asked twice, told twice; another value and another client are refused.
	first := given("a", 1)
	if again := given("a", 1); again.GetParameters().GetFields()["x"].GetNumberValue() != first.GetParameters().
		GetFields()["x"].GetNumberValue() {
		t.Errorf("asked again, got %v, want %v", again, first)
	}
	if do := heartbeat("a", 1); do != fantasiav1.TrialAction_TRIAL_ACTION_CONTINUE {
		t.Errorf("a is told %v", do)
	}
	for step := range int64(2) {
		got, err := c.AddMeasurement(r.ctx, connect.NewRequest(&fantasiav1.AddMeasurementRequest{
			Name: first.GetName(), ClientId: "a", Step: step, Metrics: map[string]float64{"loss": 2 - float64(step)},
		}))
		if err != nil || got.Msg.GetAction() != fantasiav1.TrialAction_TRIAL_ACTION_CONTINUE {
			t.Errorf("a measurement: %v, %v", got, err)
		}
	}
	for range 2 {
		if told, err := complete("a", first, 0.5); err != nil || told.GetState() != fantasiav1.TrialState_TRIAL_STATE_COMPLETED ||
			told.GetValue() != 0.5 {
			t.Fatalf("told %v, %v", told, err)
		}
	}
	_, err := complete("a", first, 0.25)
	refused(err, connect.CodeFailedPrecondition, "trial 1", "0.5")
	_, err = complete("b", first, 0.5)
	refused(err, connect.CodeFailedPrecondition, "never given to client b")

	// Trial 2: its client dies, so the next one gets it, and can tell its value.
	lost := given("dead", 2)
	deadline := time.Now().Add(30 * time.Second)
	for {
		if got := suggest("heir").GetTrials(); len(got) == 1 && got[0].GetNumber() == 2 {
			break
		} else if len(got) != 1 || got[0].GetNumber() != 3 || time.Now().After(deadline) {
			t.Fatalf("the heir got %v, want trial 3 until trial 2 is lost", got)
		}
		heartbeat("heir", 3)
		if _, err := c.ReleaseTrial(r.ctx,
			connect.NewRequest(&fantasiav1.ReleaseTrialRequest{Name: parent + "/trials/3", ClientId: "heir"})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lease / 4)
	}
	if do := heartbeat("dead", 2); do != fantasiav1.TrialAction_TRIAL_ACTION_ABANDON {
		t.Errorf("the client that lost its trial is told %v", do)
	}
	if told, err := complete("heir", lost, 0.75); err != nil || len(told.GetAttempts()) != 2 ||
		told.GetAttempts()[0].GetState() != fantasiav1.AttemptState_ATTEMPT_STATE_LOST {
		t.Errorf("the heir told %v, %v, want a second attempt after a lost one", told, err)
	}

	// The heir hands trial 3 back and gets it again. It cannot end the second attempt by the
	// first one's name.
	third := given("heir", 3)
	before := int32(len(third.GetAttempts()))
	if _, err := c.ReleaseTrial(r.ctx,
		connect.NewRequest(&fantasiav1.ReleaseTrialRequest{Name: third.GetName(), ClientId: "heir", Attempt: before})); err != nil {
		t.Fatal(err)
	}
	third = given("heir", 3)
	_, err = c.FailTrial(r.ctx, connect.NewRequest(&fantasiav1.FailTrialRequest{Name: third.GetName(), ClientId: "heir", Attempt: before}))
	refused(err, connect.CodeFailedPrecondition, "trial 3", "has ended")
	beaten, err := c.HeartbeatTrials(r.ctx, connect.NewRequest(&fantasiav1.HeartbeatTrialsRequest{
		Parent: parent, ClientId: "heir", Trials: []int32{3, 3}, Attempts: []int32{before, before + 1},
	}))
	if err != nil || beaten.Msg.GetInstructions()[0].GetAction() != fantasiav1.TrialAction_TRIAL_ACTION_ABANDON ||
		beaten.Msg.GetInstructions()[1].GetAction() != fantasiav1.TrialAction_TRIAL_ACTION_CONTINUE {
		t.Errorf("a heartbeat of both attempts: %v, %v", beaten, err)
	}
	_, err = c.HeartbeatTrials(r.ctx,
		connect.NewRequest(&fantasiav1.HeartbeatTrialsRequest{Parent: parent, ClientId: "heir", Trials: []int32{3}, Attempts: []int32{1, 2}}))
	refused(err, connect.CodeInvalidArgument, "attempts has 2 numbers")
	late, err := c.AddMeasurement(r.ctx, connect.NewRequest(&fantasiav1.AddMeasurementRequest{
		Name: third.GetName(), ClientId: "heir", Attempt: before, Step: 1, Metrics: map[string]float64{"loss": 1},
	}))
	if err != nil || late.Msg.GetAction() != fantasiav1.TrialAction_TRIAL_ACTION_ABANDON {
		t.Errorf("a measurement of the first attempt: %v, %v", late, err)
	}
	if _, err := c.ReleaseTrial(r.ctx,
		connect.NewRequest(&fantasiav1.ReleaseTrialRequest{Name: third.GetName(), ClientId: "heir", Attempt: before + 1})); err != nil {
		t.Error(err)
	}

	// A trial that was evaluated elsewhere is the best one and uses none of the budget; a
	// point of a user comes before suggestions.
	added := &fantasiav1.AddTrialRequest{Parent: parent, Parameters: x(0.125), Values: []float64{0.0625}, RequestId: "old"}
	var best *fantasiav1.Trial
	for range 2 {
		got, err := c.AddTrial(r.ctx, connect.NewRequest(added))
		if err != nil || best != nil && best.GetNumber() != got.Msg.GetTrial().GetNumber() {
			t.Fatalf("added %v, %v", got, err)
		}
		best = got.Msg.GetTrial()
	}
	_, err = c.AddTrial(r.ctx,
		connect.NewRequest(&fantasiav1.AddTrialRequest{Parent: parent, Parameters: x(0.125), Values: []float64{math.Inf(1)}}))
	refused(err, connect.CodeInvalidArgument, "finite")
	_, err = c.EnqueueTrial(r.ctx, connect.NewRequest(&fantasiav1.EnqueueTrialRequest{Parent: parent, Parameters: x(7)}))
	refused(err, connect.CodeInvalidArgument, "x", "7")
	queued, err := c.EnqueueTrial(r.ctx, connect.NewRequest(&fantasiav1.EnqueueTrialRequest{Parent: parent, Parameters: x(-0.5)}))
	if err != nil {
		t.Fatal(err)
	}
	unwanted, err := c.EnqueueTrial(r.ctx, connect.NewRequest(&fantasiav1.EnqueueTrialRequest{Parent: parent, Parameters: x(0.75)}))
	if err != nil {
		t.Fatal(err)
	}
	cancelled, err := c.CancelTrial(r.ctx,
		connect.NewRequest(&fantasiav1.CancelTrialRequest{Name: unwanted.Msg.GetTrial().GetName(), Reason: "too hot"}))
	if err != nil || cancelled.Msg.GetTrial().GetCancelReason() != "too hot" ||
		cancelled.Msg.GetTrial().GetState() != fantasiav1.TrialState_TRIAL_STATE_CANCELLED {
		t.Errorf("cancelled %v, %v", cancelled, err)
	}

	// Labels and notes, also of a trial that has ended.
	note := "odd"
	edited, err := c.EditTrial(r.ctx, connect.NewRequest(&fantasiav1.EditTrialRequest{
		Name: first.GetName(), Labels: map[string]string{"checked": "yes"}, RemoveLabels: []string{"none"}, Note: &note,
	}))
	if err != nil || edited.Msg.GetTrial().GetNote() != note || edited.Msg.GetTrial().GetLabels()["checked"] != "yes" {
		t.Errorf("edited %v, %v", edited, err)
	}
	listed, err := c.ListTrials(r.ctx,
		connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: parent, Labels: map[string]string{"checked": "yes"}}))
	if err != nil || len(listed.Msg.GetTrials()) != 1 || listed.Msg.GetTrials()[0].GetNumber() != 1 {
		t.Errorf("trials with the label: %v, %v, want trial 1", listed, err)
	}
	_, err = c.EditTrial(r.ctx, connect.NewRequest(&fantasiav1.EditTrialRequest{Name: first.GetName(), Labels: map[string]string{"a b": ""}}))
	refused(err, connect.CodeInvalidArgument, "labels", `"a b" is not a label's key`)

	// One client evaluates what is left. Trial 3 waits since it was handed back.
	evaluated := map[int32]float64{}
	for {
		got := suggest("a")
		if got.GetStudyState() != fantasiav1.StudyState_STUDY_STATE_RUNNING {
			break
		}
		for _, m := range got.GetTrials() {
			v := m.GetParameters().GetFields()["x"].GetNumberValue()
			evaluated[m.GetNumber()] = v
			if _, err := complete("a", m, 1+v*v); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := queued.Msg.GetTrial().GetNumber(); evaluated[n] != -0.5 || len(evaluated) != 4 {
		t.Errorf("the client evaluated %v, want four trials with x -0.5 as trial %d", evaluated, n)
	}
	s, err := c.GetStudy(r.ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: parent}))
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Msg.GetStudy(); m.GetState() != fantasiav1.StudyState_STUDY_STATE_COMPLETED || m.GetTrials().GetCompleted() != 7 ||
		m.GetTrials().GetAdded() != 1 ||
		m.GetBest().GetTrial() != best.GetNumber() {
		t.Errorf("the study is %v, want 6 trials and the added one completed, which is the best", m)
	}
	_, err = c.AddTrial(r.ctx, connect.NewRequest(&fantasiav1.AddTrialRequest{Parent: parent, Parameters: x(0), Values: []float64{1}}))
	refused(err, connect.CodeFailedPrecondition, "ended")
	if _, err := c.AddTrial(r.ctx, connect.NewRequest(added)); err != nil {
		t.Error(errors.Join(errors.New("a repeated request"), err))
	}
}
