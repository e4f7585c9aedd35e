package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/study"
)

// trial get says of a trial that runs how long it is expected to take, by those that have completed: eight of nine took a minute.
func TestTrialGetSaysWhatATrialTakes(t *testing.T) {
	b, now := backend(t), time.Now()
	for i := range 8 {
		start := now.Add(-time.Hour)
		b.Put("digits", record.Trial{
			Number: 4 + i, State: study.TrialCompleted, Values: study.Values{0.1}, Metrics: map[string]float64{"error": 0.1},
			Point: study.Point{"lr": 1e-3, "width": int64(8 + 30*i)}, Times: record.Times{Started: start, Ended: start.Add(time.Minute)},
		})
	}
	b.Put("digits", record.Trial{
		Number: 12, State: study.TrialRunning, Point: study.Point{"lr": 1e-3, "width": int64(100)},
		Times: record.Times{Started: now.Add(-20 * time.Second)},
	})
	url, stop := serveOn(t, "127.0.0.1:0", b)
	defer stop()
	get := func(args ...string) string {
		run := start(t.Context(), append([]string{"trial", "get", "digits", "--server", url}, args...)...)
		if code := <-run.code; code != cli.ExitOK {
			t.Fatalf("exit code %d: %s", code, run.errs)
		}
		return run.out.String()
	}
	if out := get("12"); !regexp.MustCompile(`Takes: +about ([45]\d(\.\d)?s|1m \d\ds) in all, likely .* to .*; it has run for 2\d(\.\d)?s`).MatchString(out) {
		t.Errorf("of a trial that runs it says\n%s", out)
	}
	var v view.Trial
	if err := json.Unmarshal([]byte(get("12", "-o", "json")), &v); err != nil || v.Takes == nil || !(v.Takes.Low < 60 && 60 < v.Takes.High) {
		t.Errorf("of a trial that runs, %+v is expected, %v", v.Takes, err)
	}
	if out := get("5"); regexp.MustCompile(`Takes:`).MatchString(out) {
		t.Errorf("of a trial that has completed it says\n%s", out)
	}
}

// trial get says of a trial that was stopped early what a model expected of it.
func TestTrialGetSaysWhatWasExpected(t *testing.T) {
	b := backend(t)
	b.Put("digits", record.Trial{
		Number: 4, State: study.TrialPruned, Point: study.Point{"lr": 1e-3, "width": int64(8)},
		Stopped: &record.Stopped{Attempt: 1, Step: 4, Reason: "no hope", Expected: &record.Expected{
			Steps: []int64{6, 20}, Values: []float64{0.5, 0.25}, Low: []float64{0.4, 0.125}, High: []float64{0.6, 0.375}, Level: 0.0625,
		}},
	})
	url, stop := serveOn(t, "127.0.0.1:0", b)
	defer stop()
	run := start(t.Context(), "trial", "get", "digits", "4", "--server", url)
	want := "Expected: +0.25 at step 20, from 0.125 to 0.375 with a probability of 90%; the level to beat was 0.0625"
	if code := <-run.code; code != cli.ExitOK || !regexp.MustCompile(want).MatchString(run.out.String()) {
		t.Errorf("exit code %d: %s%s", code, run.out, run.errs)
	}
}

// trial continue makes a trial of one that was stopped early, which is said by trial get, and is refused for any other.
func TestTrialContinue(t *testing.T) {
	b := backend(t)
	file := strings.NewReplacer("NAME", "curves", "  trial: {command: [python, train.py, \"${args}\"]}\n", "").Replace(file) +
		"  earlyStopping: {name: threshold, settings: {upper: 1}}\n"
	if _, err := b.Create(t.Context(), []byte(file)); err != nil {
		t.Fatal(err)
	}
	url, stop := serveOn(t, "127.0.0.1:0", b)
	defer stop()
	c, parent := fantasiav1connect.NewStudyServiceClient(http.DefaultClient, "http://"+url), "studies/curves"
	point, err := structpb.NewStruct(map[string]any{"lr": 1e-3, "width": 8})
	if err != nil {
		t.Fatal(err)
	}
	wish := &fantasiav1.EnqueueTrialRequest{Parent: parent, Parameters: point}
	if _, err := c.EnqueueTrial(t.Context(), connect.NewRequest(wish)); err != nil {
		t.Fatal(err)
	}
	wish.Continues = 1
	if _, err := c.EnqueueTrial(t.Context(), connect.NewRequest(wish)); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a trial is continued at another point: %v", err)
	}
	given, err := c.SuggestTrials(t.Context(), connect.NewRequest(&fantasiav1.SuggestTrialsRequest{
		Parent: parent, ClientId: "a", Count: 1, Wait: durationpb.New(10 * time.Second),
	}))
	if err != nil || len(given.Msg.GetTrials()) != 1 {
		t.Fatalf("given %v, %v", given, err)
	}
	name := parent + "/trials/1"
	told, err := c.AddMeasurement(t.Context(), connect.NewRequest(&fantasiav1.AddMeasurementRequest{
		Name: name, ClientId: "a", Step: 3, Metrics: map[string]float64{"error": 2},
	}))
	if err != nil || told.Msg.GetAction() != fantasiav1.TrialAction_TRIAL_ACTION_PRUNE {
		t.Fatalf("told %v, %v", told, err)
	}
	if _, err := c.CompleteTrial(t.Context(), connect.NewRequest(&fantasiav1.CompleteTrialRequest{
		Name: name, ClientId: "a", Pruned: true,
	})); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"continue", "curves", "1"}, cli.ExitOK, "^trial 2 continues trial 1\n$"},
		{[]string{"get", "curves", "2"}, cli.ExitOK, "(?m)^Continues: +trial 1, which was stopped early$"},
		{[]string{"get", "curves", "2"}, cli.ExitOK, "(?m)^Why: +runs trial 1 to its end, which was stopped at step 3$"},
		{[]string{"continue", "curves", "1"}, cli.ExitError, "^fantasia: trial 2 continues trial 1 already\n$"},
		{[]string{"continue", "curves", "2"}, cli.ExitError, "^fantasia: trial 2 is PENDING; only a trial that was stopped early"},
	} {
		run := start(t.Context(), append([]string{"trial", "--server", url}, test.args...)...)
		code := <-run.code
		if got := run.out.String() + run.errs.String(); code != test.code || !regexp.MustCompile(test.want).MatchString(got) {
			t.Errorf("%s: exit code %d: %s", strings.Join(test.args, " "), code, got)
		}
	}

	// Over HTTP, a call that continues a trial needs no parameters; one that does neither is refused.
	if _, err := c.CancelTrial(t.Context(), connect.NewRequest(&fantasiav1.CancelTrialRequest{Name: parent + "/trials/2"})); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ body, want string }{
		{`{"parent": "studies/curves", "continues": 1}`, `"predecessor":1`},
		{`{"parent": "studies/curves"}`, "want parameters, or the number of a trial in continues"},
	} {
		resp, err := http.Post("http://"+url+"/fantasia.v1.StudyService/EnqueueTrial", "application/json", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || !strings.Contains(strings.ReplaceAll(string(got), `": `, `":`), test.want) {
			t.Errorf("%s: %s, %v", test.body, got, err)
		}
	}

	// A study that has ended with its last trial goes on for the new one.
	if _, err := c.CancelTrial(t.Context(), connect.NewRequest(&fantasiav1.CancelTrialRequest{Name: parent + "/trials/3"})); err != nil {
		t.Fatal(err)
	}
	for _, test := range [][2]string{
		{"study edit curves --max-trials 1", ""},
		{"study get curves", "(?m)^State: +FAILED"},
		{"trial continue curves 1", "^trial 4 continues trial 1\n$"},
		{"study get curves", "(?m)^State: +RUNNING"},
	} {
		run := start(t.Context(), append(strings.Fields(test[0]), "--server", url)...)
		code := <-run.code
		if got := run.out.String() + run.errs.String(); code != cli.ExitOK || !regexp.MustCompile(test[1]).MatchString(got) {
			t.Errorf("%s: exit code %d: %s", test[0], code, got)
		}
	}
}
