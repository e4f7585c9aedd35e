package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/structpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// TestLife takes a study through its life over every protocol.
func TestLife(t *testing.T) {
	for _, protocol := range slices.Sorted(maps.Keys(protocols)) {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			ctx, backend := within(t), servertest.New(t)
			c := dial(t, serve(t, backend, server.Options{Now: func() time.Time { return servertest.Epoch.Add(90 * time.Second) }}), protocol)

			created, err := c.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named("digits")}))
			if err != nil {
				t.Fatal(err)
			}
			s := created.Msg.GetStudy()
			if s.GetName() != "studies/digits" || s.GetId() != "ID1" || s.GetState() != fantasiav1.StudyState_STUDY_STATE_RUNNING ||
				s.GetObjective().GetGoal() != 0.01 || s.GetMaxTrials() != 64 || s.GetParallelism() != 8 ||
				s.GetElapsed().AsDuration() != 90*time.Second {
				t.Errorf("created %v", s)
			}
			// The file that comes back is a study file again.
			if again, err := file.Parse([]byte(s.GetStudyFile())); err != nil || again.Metadata.Name != "digits" {
				t.Errorf("the study's file reads back as %v, %v", again, err)
			}
			if _, err := c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/ID1"})); err != nil {
				t.Errorf("by id: %v", err)
			}

			larger := strings.Replace(named("digits"), "64}", "100}", 1)
			updated, err := c.UpdateStudy(ctx, connect.NewRequest(&fantasiav1.UpdateStudyRequest{Name: "studies/digits", StudyFile: larger}))
			if err != nil || updated.Msg.GetStudy().GetMaxTrials() != 100 {
				t.Errorf("updated %v, %v", updated, err)
			}

			for _, set := range []map[string]any{{"a": 1.0, "b": []any{"x", true}}, {"a": nil, "c": 2.5}} {
				request := &fantasiav1.UpdateStudyRequest{Name: "studies/digits", Attributes: structOf(t, set)}
				if updated, err = c.UpdateStudy(ctx, connect.NewRequest(request)); err != nil {
					t.Fatal(err)
				}
			}
			want := map[string]any{"b": []any{"x", true}, "c": 2.5}
			if got := updated.Msg.GetStudy(); !cmp.Equal(got.GetAttributes().AsMap(), want) || got.GetMaxTrials() != 100 {
				t.Errorf("attributes %v and %d trials, want %v and 100", got.GetAttributes(), got.GetMaxTrials(), want)
			}
			for _, request := range []*fantasiav1.UpdateStudyRequest{{}, {StudyFile: larger, Attributes: structOf(t, want)}} {
				request.Name = "studies/digits"
				if _, err := c.UpdateStudy(ctx, connect.NewRequest(request)); connect.CodeOf(err) != connect.CodeInvalidArgument {
					t.Errorf("both or none of file and attributes: %v", err)
				}
			}

			_, err = c.DeleteStudy(ctx, connect.NewRequest(&fantasiav1.DeleteStudyRequest{Name: "studies/digits"}))
			if connect.CodeOf(err) != connect.CodeFailedPrecondition {
				t.Errorf("deleting a running study: %v", err)
			}
			stopped, err := c.StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/digits", Reason: "enough"}))
			if err != nil || stopped.Msg.GetStudy().GetState() != fantasiav1.StudyState_STUDY_STATE_STOPPED ||
				stopped.Msg.GetStudy().GetReason() != "enough" {
				t.Errorf("stopped %v, %v", stopped, err)
			}
			if _, err = c.DeleteStudy(ctx, connect.NewRequest(&fantasiav1.DeleteStudyRequest{Name: "studies/digits"})); err != nil {
				t.Errorf("deleting a stopped study: %v", err)
			}
			_, err = c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/digits"}))
			if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "study digits: not found") {
				t.Errorf("a deleted study: %v", err)
			}
		})
	}
}

// TestSameView checks that a client sees what the ledger holds.
func TestSameView(t *testing.T) {
	backend := servertest.New(t)
	s := create(t, backend, "digits")
	trial := evaluated(7, 0.03125)
	trial.Expected, trial.Attempts[0].Cost = 3, new(2.5)
	worker := coordinator.Worker{Seen: servertest.Epoch, Heartbeat: messaging.Heartbeat{
		Worker: "w2", Pool: "gpu", Slots: 4, Free: 3, Host: "node-2", Software: "fantasia 0.1.0", StudyCommands: true, Runs: "sidecar",
		Running: []messaging.AttemptID{{Study: s.Spec.ID, Trial: 7, Attempt: 2}},
	}}
	backend.Put("digits", trial)
	backend.Change("digits", func(stored *server.Study) {
		stored.Best = &trial
		stored.Recommended = &optimizer.Recommendation{Trial: 7, Mean: 0.04, SD: 0.002, Point: trial.Point, Front: []optimizer.Expected{
			{Trial: 7, Means: []float64{0.04, 12}, SDs: []float64{0.002, 0}, Knee: true},
			{Trial: 9, Means: []float64{0.05, 10}, SDs: []float64{0, 3}},
		}}
		stored.Status.Counts.Completed, stored.Status.Counts.Running = 1, 2
		stored.Spec.Definition.Spec.Cost, stored.Spec.Definition.Spec.Budget.MaxCost = &study.Cost{Metric: "dollars"}, 20
		stored.Status.Spent = 2.5
		s = *stored
	})
	backend.SetWorkers(worker, coordinator.Worker{Heartbeat: messaging.Heartbeat{Worker: "w1", Pool: "default"}})
	now := servertest.Epoch.Add(1234567 * time.Microsecond)
	for _, protocol := range slices.Sorted(maps.Keys(protocols)) {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			c := dial(t, serve(t, backend, server.Options{Now: func() time.Time { return now }}), protocol)

			got, err := c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/digits"}))
			if err != nil {
				t.Fatal(err)
			}
			want := view.OfStudy(s.Spec, s.Status, s.Best, s.Recommended, now)
			if diff := cmp.Diff(toJSON(t, want), toJSON(t, view.FromStudy(got.Msg.GetStudy()))); diff != "" {
				t.Errorf("study (-ledger +client):\n%s", diff)
			}
			gotTrial, err := c.GetTrial(ctx, connect.NewRequest(&fantasiav1.GetTrialRequest{Name: "studies/digits/trials/7"}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(toJSON(t, view.OfTrial(trial)), toJSON(t, view.FromTrial(gotTrial.Msg.GetTrial()))); diff != "" {
				t.Errorf("trial (-ledger +client):\n%s", diff)
			}
			workers, err := c.ListWorkers(ctx, connect.NewRequest(&fantasiav1.ListWorkersRequest{Pool: "gpu"}))
			if err != nil || len(workers.Msg.GetWorkers()) != 1 {
				t.Fatalf("workers %v, %v", workers, err)
			}
			shown := view.Worker{
				Worker: "w2", Pool: "gpu", Slots: 4, Free: 3, Host: "node-2", Software: "fantasia 0.1.0", StudyCommands: true, Runs: "sidecar",
				Running: []view.Attempt{{Study: s.Spec.ID, Trial: 7, Attempt: 2}}, Seen: servertest.Epoch,
			}
			if diff := cmp.Diff(toJSON(t, shown), toJSON(t, view.FromWorker(workers.Msg.GetWorkers()[0]))); diff != "" {
				t.Errorf("worker (-ledger +client):\n%s", diff)
			}
		})
	}
}

func TestPages(t *testing.T) {
	ctx, backend := within(t), servertest.New(t)
	for i := range 5 {
		create(t, backend, fmt.Sprintf("s%d", i))
	}
	// Every third trial failed, over more trials than are scanned at a time.
	var failed []int
	var trials []record.Trial
	for n := 1; n <= 1300; n++ {
		trial := evaluated(n, 1)
		if n%3 == 0 {
			trial.State = study.TrialFailed
			failed = append(failed, n)
		}
		trials = append(trials, trial)
	}
	backend.Put("s0", trials...)
	c := dial(t, serve(t, backend, server.Options{}), "connect")

	var names []string
	var sizes []int
	for token := ""; ; {
		page, err := c.ListStudies(ctx, connect.NewRequest(&fantasiav1.ListStudiesRequest{PageSize: 2, PageToken: token}))
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(page.Msg.GetStudies()))
		for _, s := range page.Msg.GetStudies() {
			names = append(names, s.GetName())
			if s.GetStudyFile() != "" {
				t.Errorf("%s brings its file in a list", s.GetName())
			}
		}
		if token = page.Msg.GetNextPageToken(); token == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"studies/s0", "studies/s1", "studies/s2", "studies/s3", "studies/s4"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{2, 2, 1}, sizes); diff != "" {
		t.Error(diff)
	}

	for _, size := range []int32{0, 433, 1000} {
		var numbers []int
		for token := ""; ; {
			page, err := c.ListTrials(ctx, connect.NewRequest(&fantasiav1.ListTrialsRequest{
				Parent: "studies/s0", PageSize: size, PageToken: token,
				States: []fantasiav1.TrialState{fantasiav1.TrialState_TRIAL_STATE_FAILED},
			}))
			if err != nil {
				t.Fatal(err)
			}
			for _, trial := range page.Msg.GetTrials() {
				numbers = append(numbers, int(trial.GetNumber()))
			}
			if token = page.Msg.GetNextPageToken(); token == "" {
				break
			}
		}
		if diff := cmp.Diff(failed, numbers); diff != "" {
			t.Errorf("failed trials by pages of %d:\n%s", size, diff)
		}
	}
}

// TestListOptimalTrials checks that the front is that of all trials, page by page.
func TestListOptimalTrials(t *testing.T) {
	ctx, backend := within(t), servertest.New(t)
	if _, err := backend.Create(ctx, []byte(`{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "two"}, "spec": {
		"objectives": [{"metric": "error", "direction": "minimize", "reference": 9}, {"metric": "speed", "direction": "maximize"}],
		"parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}], "budget": {"maxTrials": 2000}}}`)); err != nil {
		t.Fatal(err)
	}
	var want []int
	var trials []record.Trial
	for n := 1; n <= 1200; n++ { // more than are read at once
		speed := float64(n - n%400)
		values := study.Values{speed + 400, speed} // dominated by every 400th trial
		if n%400 == 0 {
			want, values = append(want, n), study.Values{speed, speed}
		}
		trials = append(trials, record.Trial{Number: n, State: study.TrialCompleted, Point: study.Point{"x": 0.5}, Values: values})
	}
	backend.Put("two", trials...)
	c := dial(t, serve(t, backend, server.Options{}), "connect")
	got, err := c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/two"}))
	if err != nil {
		t.Fatal(err)
	}
	objectives := got.Msg.GetStudy().GetObjectives()
	if len(objectives) != 2 || objectives[1].GetMetric() != "speed" || objectives[0].GetReference() != 9 ||
		got.Msg.GetStudy().GetObjective().GetMetric() != "error" {
		t.Errorf("the objectives are %v, the first %v", objectives, got.Msg.GetStudy().GetObjective())
	}
	for _, size := range []int32{0, 2} {
		var numbers []int
		for token := ""; ; {
			page, err := c.ListOptimalTrials(ctx,
				connect.NewRequest(&fantasiav1.ListOptimalTrialsRequest{Parent: "studies/two", PageSize: size, PageToken: token}))
			if err != nil {
				t.Fatal(err)
			}
			for _, trial := range page.Msg.GetTrials() {
				numbers = append(numbers, int(trial.GetNumber()))
			}
			if token = page.Msg.GetNextPageToken(); token == "" {
				break
			}
		}
		if diff := cmp.Diff(want, numbers); diff != "" {
			t.Errorf("the front by pages of %d:\n%s", size, diff)
		}
	}
}

// TestWords checks that every state and source in the ledger has a value in the API, so
// that a new one is not sent as unspecified.
func TestWords(t *testing.T) {
	ctx, backend := within(t), servertest.New(t)
	create(t, backend, "digits")
	c := dial(t, serve(t, backend, server.Options{}), "connect")
	var want, got []string
	put := func(trial record.Trial) {
		backend.Put("digits", trial)
		resp, err := c.GetTrial(ctx, connect.NewRequest(&fantasiav1.GetTrialRequest{Name: view.TrialName("digits", trial.Number)}))
		if err != nil {
			t.Fatal(err)
		}
		m := resp.Msg.GetTrial()
		attempt := strings.ReplaceAll(strings.ToLower(view.EnumName(m.GetAttempts()[0].GetState())), "_", "-")
		want = append(want, fmt.Sprint(trial.State, trial.Source, trial.Attempts[0].State))
		got = append(got, fmt.Sprint(view.EnumName(m.GetState()), strings.ToLower(view.EnumName(m.GetSource())), attempt))
	}
	for i, state := range []study.AttemptState{
		study.AttemptOpen, study.AttemptSucceeded, study.AttemptFailed, study.AttemptLost, study.AttemptHandedBack,
		study.AttemptPruned, study.AttemptCancelled,
	} {
		trial := evaluated(i+1, 1)
		trial.Attempts[0].State = state
		put(trial)
	}
	for i, source := range []optimizer.Source{
		optimizer.SourceInitial, optimizer.SourceDesign, optimizer.SourceRandom, optimizer.SourceModel,
		optimizer.SourceFallback, optimizer.SourceRequested,
	} {
		trial := evaluated(i+10, 1)
		trial.Source = source
		put(trial)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBadFile checks that every problem of a study file is reported with its place.
func TestBadFile(t *testing.T) {
	bad := strings.Replace(named("digits"), "max: 256", "max: 0", 1)
	bad = strings.Replace(bad, "maxTrials: 64", "maxTrials: 0", 1)
	_, parseErr := file.Parse([]byte(bad))
	for _, protocol := range []string{"connect", "grpc", "grpc-web"} {
		c := dial(t, serve(t, servertest.New(t), server.Options{}), protocol)
		_, err := c.CreateStudy(within(t), connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: bad}))
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), parseErr.Error()) {
			t.Errorf("%s: %v; want %v", protocol, err, parseErr)
		}
		fields := violations(t, err)
		if len(fields) != 2 || !strings.HasPrefix(fields[0].GetDescription(), "8:") || !strings.HasPrefix(fields[1].GetDescription(), "10:") {
			t.Errorf("%s: violations %v; want line 8 and line 10", protocol, fields)
		}
	}
}

// An invalid file with many problems has an answer of bounded size: the message lists the first
// ones, the detail up to 100, and no line is sent twice beyond the message's bound.
func TestManyProblems(t *testing.T) {
	file := named("many")
	for i := range 500 {
		file += fmt.Sprintf("unknown%03d%s: 1\n", i, strings.Repeat("x", 150))
	}
	for protocol := range protocols {
		_, err := dial(t, serve(t, servertest.New(t), server.Options{}), protocol).CreateStudy(within(t),
			connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: file}))
		check(t, err, connect.CodeInvalidArgument, "%s: a file with 500 problems", protocol)
		fields, size := violations(t, err), 0
		for _, f := range fields {
			size += len(f.GetField()) + len(f.GetDescription())
		}
		if len(fields) < 50 || size > 32<<10 {
			t.Errorf("%s: %d violations of %d bytes; want many, of 32 KiB at most", protocol, len(fields), size)
		}
		if text := err.Error(); len(text) > 1200 || !strings.Contains(text, "unknown000") ||
			!strings.Contains(text, "more problems: see the error's details") {
			t.Errorf("%s: a message of %d bytes: %.300s; want the first problems and how many more there are", protocol, len(text), text)
		}
	}
}

// violations returns the violations of an error's BadRequest detail.
func violations(t *testing.T, err error) []*errdetails.BadRequest_FieldViolation {
	t.Helper()
	connected, ok := errors.AsType[*connect.Error](err)
	if !ok {
		t.Fatalf("%v is no error of connect's", err)
	}
	for _, detail := range connected.Details() {
		value, err := detail.Value()
		if err != nil {
			t.Fatal(err)
		}
		if bad, ok := value.(*errdetails.BadRequest); ok {
			return bad.GetFieldViolations()
		}
	}
	return nil
}

// toJSON is a value as a script sees it.
func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBadRequests checks that errors name the invalid field.
func TestBadRequests(t *testing.T) {
	backend := servertest.New(t)
	create(t, backend, "digits")
	c := dial(t, serve(t, backend, server.Options{}), "connect")
	for _, bad := range []struct {
		field string
		code  connect.Code
		call  func(context.Context) error
	}{
		{"study_file", connect.CodeInvalidArgument, func(ctx context.Context) error {
			_, err := c.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{}))
			return err
		}},
		{"name", connect.CodeInvalidArgument, func(ctx context.Context) error {
			_, err := c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "digits"}))
			return err
		}},
		{"name", connect.CodeInvalidArgument, func(ctx context.Context) error {
			_, err := c.GetTrial(ctx, connect.NewRequest(&fantasiav1.GetTrialRequest{Name: "studies/digits/trials/0"}))
			return err
		}},
		{"name", connect.CodeInvalidArgument, func(ctx context.Context) error {
			_, err := c.StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/../digits"}))
			return err
		}},
		{"reason", connect.CodeInvalidArgument, func(ctx context.Context) error {
			_, err := c.StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/digits", Reason: strings.Repeat("x", 1025)}))
			return err
		}},
		{"page_size", connect.CodeInvalidArgument, func(ctx context.Context) error {
			_, err := c.ListStudies(ctx, connect.NewRequest(&fantasiav1.ListStudiesRequest{PageSize: -1}))
			return err
		}},
		{"page_token", connect.CodeInvalidArgument, func(ctx context.Context) error {
			_, err := c.ListStudies(ctx, connect.NewRequest(&fantasiav1.ListStudiesRequest{PageToken: "!"}))
			return err
		}},
		{"page_token", connect.CodeInvalidArgument, func(ctx context.Context) error {
			_, err := c.ListTrials(ctx, connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: "studies/digits", PageToken: "YQ"}))
			return err
		}},
		{"states", connect.CodeInvalidArgument, func(ctx context.Context) error {
			_, err := c.ListTrials(ctx,
				connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: "studies/digits", States: []fantasiav1.TrialState{99}}))
			return err
		}},
		{"parent", connect.CodeInvalidArgument, func(ctx context.Context) error {
			stream, err := c.WatchTrials(ctx, connect.NewRequest(&fantasiav1.WatchTrialsRequest{}))
			return drain(stream, err)
		}},
		{"study other", connect.CodeNotFound, func(ctx context.Context) error {
			stream, err := c.WatchStudy(ctx, connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: "studies/other"}))
			return drain(stream, err)
		}},
		{"study digits", connect.CodeAlreadyExists, func(ctx context.Context) error {
			_, err := c.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named("digits")}))
			return err
		}},
		{"metadata.name", connect.CodeFailedPrecondition, func(ctx context.Context) error {
			_, err := c.UpdateStudy(ctx, connect.NewRequest(&fantasiav1.UpdateStudyRequest{Name: "studies/digits", StudyFile: named("other")}))
			return err
		}},
	} {
		err := bad.call(within(t))
		if connect.CodeOf(err) != bad.code || !strings.Contains(err.Error(), bad.field) {
			t.Errorf("got %v; want %v that names %s", err, bad.code, bad.field)
		}
	}
}

// drain reads a stream to its end and returns its error.
func drain[T any](stream *connect.ServerStreamForClient[T], err error) error {
	if err != nil {
		return err
	}
	for stream.Receive() {
	}
	return errors.Join(stream.Err(), stream.Close())
}

// structOf returns a JSON object as a message.
func structOf(t *testing.T, object map[string]any) *structpb.Struct {
	t.Helper()
	made, err := structpb.NewStruct(object)
	if err != nil {
		t.Fatal(err)
	}
	return made
}
