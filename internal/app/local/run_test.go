package local_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"google.golang.org/protobuf/proto"
)

// streamOf returns a study of the test binary in stream mode.
func streamOf(t *testing.T, trials, parallelism int) *study.Study {
	return parse(t, streamStudy, "random", trials, parallelism, self(t))
}

func run(t *testing.T, state string, s *study.Study) *display.Result {
	t.Helper()
	r, err := local.Run(t.Context(), local.Options{Study: s, State: state, GPUs: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A study of an optimiser with a model ends with a recommendation, even when it is run
// again; other optimisers recommend nothing.
func TestRunRecommends(t *testing.T) {
	for algorithm, recommends := range map[string]bool{`gp, settings: {noise: "no"}`: true, "random": false, "sobol": false} {
		state, s := stateDir(t), parse(t, streamStudy, algorithm, 4, 2, self(t))
		for range 2 {
			r := run(t, state, s)
			var want *optimizer.Recommendation
			if recommends { // without noise, the best value
				want = &optimizer.Recommendation{Trial: r.Best.Number, Mean: r.Best.Values.First(), Point: r.Best.Point}
			}
			if diff := cmp.Diff(want, r.Recommended); diff != "" {
				t.Errorf("%s: recommended (-want +got):\n%s", algorithm, diff)
			}
		}
	}
}

// After a run, the commands that read its directory recommend what the run recommended at its end: not
// what was stored before its last trials ended.
func TestKeptRecommendsOfAll(t *testing.T) {
	state, s := stateDir(t), parse(t, streamStudy, `gp, settings: {noise: "no"}`, 6, 1, self(t))
	want := run(t, state, s).Recommended
	for range 2 { // the second connection finds what the run has left, too
		c, err := local.Connect(t.Context(), state)
		if err != nil {
			t.Fatal(err)
		}
		client := fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: c.Transport}, "http://state")
		for range 2 {
			got, err := client.GetStudy(t.Context(), connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/" + s.Metadata.Name}))
			if err != nil {
				t.Fatal(err)
			}
			if r := got.Msg.GetStudy().GetRecommended(); int(r.GetTrial()) != want.Trial || r.GetMean() != want.Mean || !r.GetCurrent() {
				t.Errorf("recommended: %v, by the run %+v", r, want)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A state continues with a larger budget, accepts another parallelism, refuses
// incompatible changes, and prints its result again if nothing is left to do.
func TestStateGoesOn(t *testing.T) {
	state := stateDir(t)
	first := run(t, state, streamOf(t, 6, 2))
	if first.AlreadyEnded || first.Status.State != study.Completed || first.Status.Counts.Completed != 6 || first.Best == nil {
		t.Fatalf("the first run: %+v", first)
	}
	for i := range first.Trials {
		if tr := &first.Trials[i]; tr.Values.First() < first.Best.Values.First() {
			t.Errorf("the best trial has %v, trial %d %v", first.Best.Values.First(), tr.Number, tr.Values.First())
		}
	}

	again := run(t, state, streamOf(t, 6, 2))
	if !again.AlreadyEnded || len(again.Trials) != 6 || again.Best.Number != first.Best.Number {
		t.Errorf("an ended study run again: %+v", again)
	}

	changed := streamOf(t, 6, 2)
	changed.Spec.Objective.Direction = study.Maximize
	_, err := local.Run(t.Context(), local.Options{Study: changed, State: state, GPUs: "none"})
	var differs *local.Changed
	if !errors.Is(err, local.ErrIncompatible) || !errors.As(err, &differs) {
		t.Fatalf("a changed study file: %v", err)
	}
	if len(differs.Differences) != 1 || !strings.Contains(differs.Differences[0], "spec.objective.direction") ||
		!strings.Contains(err.Error(), state) {
		t.Errorf("what differs: %q in %v", differs.Differences, err)
	}
	other := streamOf(t, 6, 2)
	other.Metadata.Name = "other"
	if _, err := local.Run(t.Context(), local.Options{Study: other, State: state, GPUs: "none"}); !errors.Is(err, local.ErrIncompatible) {
		t.Errorf("another study in the state: %v", err)
	}

	more := run(t, state, streamOf(t, 10, 5))
	if more.AlreadyEnded || more.Status.Counts.Completed != 10 || len(more.Trials) != 10 || more.Status.Position != 20 {
		t.Errorf("a larger budget: %+v", more.Status)
	}
	if got := more.Study.Definition.Spec.Parallelism; got != 5 {
		t.Errorf("the parallelism is %d, want 5", got)
	}
	for i := range first.Trials {
		if more.Trials[i].Values.First() != first.Trials[i].Values.First() || len(more.Trials[i].Attempts) != 1 {
			t.Errorf("trial %d was evaluated again", i+1)
		}
	}

	kept, err := local.Read(t.Context(), state)
	if err != nil || kept.Study.Definition.Metadata.Name != "square" || kept.Status.Counts.Completed != 10 || len(kept.Trials) != 10 {
		t.Errorf("what is read of the state: %+v, %v", kept, err)
	}
	old, err := local.SetAside(state)
	if err != nil || old != state+".1" {
		t.Fatalf("set aside: %q, %v", old, err)
	}
	if _, err := os.Stat(filepath.Join(old, "etcd")); err != nil {
		t.Errorf("the state that was set aside: %v", err)
	}
	if old, err := local.SetAside(state); old != "" || err != nil {
		t.Errorf("set aside what is not there: %q, %v", old, err)
	}
}

const processStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: process}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: %d}
  parallelism: %d
  trial: {command: [/bin/sh, -c, %s], grace: 1s, retries: {lost: 0}}
`

// An interrupted run hands back its running trials, which costs no retry, and the next run
// continues: completed trials are not evaluated again, and nothing fails. Until then,
// nobody else gets the state.
func TestInterruptedAndResumed(t *testing.T) {
	state, log := stateDir(t), filepath.Join(t.TempDir(), "starts")
	release := filepath.Join(t.TempDir(), "release")
	// Trials up to 4 answer at once; the others wait to be released.
	script := fmt.Sprintf(`echo $FANTASIA_TRIAL >>%s
if [ $FANTASIA_TRIAL -gt 4 ]; then while [ ! -e %s ]; do sleep 0.05; done; fi
echo '{"fantasia": {"metrics": {"loss": 1}}}'`, log, release)
	s := parse(t, processStudy, 8, 2, strconv.Quote(script))
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	tried := false
	r, err := local.Run(ctx, local.Options{Study: s, State: state, GPUs: "none", Progress: func(p coordinator.Progress, _ local.Trials) {
		if p.Status.Counts.Completed < 4 || p.Status.Counts.Running < 2 {
			return
		}
		if !tried {
			tried = true
			_, err := local.Run(t.Context(), local.Options{Study: s, State: state})
			if !errors.Is(err, local.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
				t.Errorf("a second run on the state: %v", err)
			}
			if _, err := local.SetAside(state); !errors.Is(err, local.ErrInUse) {
				t.Errorf("set aside a state in use: %v", err)
			}
			if _, err := local.Read(t.Context(), state); !errors.Is(err, local.ErrInUse) {
				t.Errorf("read a state in use: %v", err)
			}
			ask(t, state, fantasiav1.StudyState_STUDY_STATE_RUNNING, &fantasiav1.TrialCounts{Completed: 4, Running: 2})
		}
		interrupt()
	}})
	if !errors.Is(err, local.ErrInterrupted) || r == nil || !r.Interrupted || r.Status.Counts.Completed != 4 || !tried {
		t.Fatalf("the interrupted run: %+v, %v", r, err)
	}
	ask(t, state, fantasiav1.StudyState_STUDY_STATE_RUNNING, &fantasiav1.TrialCounts{Completed: 4, Pending: 2})
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	resumed := run(t, state, s)
	if resumed.AlreadyEnded || resumed.Status.Counts.Completed != 8 || len(resumed.Trials) != 8 || resumed.Status.Position != 16 {
		t.Errorf("the resumed run: %+v", resumed.Status)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	starts := map[string]int{}
	for _, trial := range strings.Fields(string(text)) {
		starts[trial]++
	}
	for n := 1; n <= 4; n++ {
		if starts[strconv.Itoa(n)] != 1 {
			t.Errorf("trial %d, complete before the interruption, was started %d times", n, starts[strconv.Itoa(n)])
		}
	}
}

func TestReadWithoutState(t *testing.T) {
	empty := t.TempDir()
	for _, dir := range []string{filepath.Join(empty, "nowhere"), empty} {
		if _, err := local.Read(t.Context(), dir); !errors.Is(err, local.ErrNoState) || !strings.Contains(err.Error(), dir) {
			t.Errorf("read %s: %v", dir, err)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("reading nothing left %v, %v", left, err)
	}
}

// A run that is interrupted while it starts says so, and releases its lock.
func TestInterruptedAtTheStart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	state := stateDir(t)
	if _, err := local.Run(ctx, local.Options{Study: streamOf(t, 2, 1), State: state, GPUs: "none"}); !errors.Is(err, local.ErrInterrupted) {
		t.Errorf("interrupted at the start: %v", err)
	}
	if r := run(t, state, streamOf(t, 2, 1)); r.Status.Counts.Completed != 2 {
		t.Errorf("the next run: %+v", r.Status)
	}
}

// If the first three trials fail, the study ends with the program's last output.
func TestFailingProgram(t *testing.T) {
	s := parse(t, processStudy, 20, 1, strconv.Quote("echo 'no such file: data.csv' >&2; exit 3"))
	r := run(t, stateDir(t), s)
	if r.Status.State != study.Failed || r.Status.Counts.Failed != 3 || r.Best != nil || r.Recommended != nil {
		t.Errorf("the study is %s with %+v", r.Status.State, r.Status.Counts)
	}
	if !strings.Contains(r.Status.Reason, "no such file: data.csv") {
		t.Errorf("the reason has none of the program's words: %s", r.Status.Reason)
	}
	f := r.Trials[0].Last().Failure
	if f == nil || f.ExitCode == nil || *f.ExitCode != 3 {
		t.Errorf("the failure: %+v", f)
	}
}

// A study whose program failed goes on once it was resumed, and not before.
func TestResumedStudyGoesOn(t *testing.T) {
	state, flag := stateDir(t), filepath.Join(t.TempDir(), "mended")
	s := parse(t, processStudy, 5, 1, strconv.Quote("test -e "+flag+` || exit 3; echo '{"fantasia": {"metrics": {"loss": 1}}}'`))
	if r := run(t, state, s); r.Status.State != study.Failed || !strings.Contains(r.Status.Reason, "fantasia study resume") {
		t.Fatalf("the study is %s: %s; want it failed, with the way out", r.Status.State, r.Status.Reason)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, state, s); !r.AlreadyEnded {
		t.Errorf("before it is resumed, the study is %s", r.Status.State)
	}
	if err := local.Resume(t.Context(), state, "", "test"); err != nil {
		t.Fatal(err)
	}
	if r := run(t, state, s); r.Status.State != study.Completed || r.Status.Counts.Completed != 2 {
		t.Errorf("after it was resumed, the study is %s with %+v; want 2 completed", r.Status.State, r.Status.Counts)
	}
	if err := local.Resume(t.Context(), state, "", "test"); !errors.Is(err, study.ErrPrecondition) {
		t.Errorf("resume a study without budget: %v; want it refused", err)
	}
}

// A run keeps the files of the best trial, however much later ones leave, and continues with them.
func TestKeepTrials(t *testing.T) {
	const file = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: files}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  initial: [{x: 0}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: %d}
  trial: {command: [sh, -c, 'head -c 65536 /dev/zero > "$FANTASIA_TRIAL_DIR/model"; echo "{\"fantasia\": {\"metrics\": {\"loss\": $1}}}"', sh, "${x}"]}
`
	state := stateDir(t)
	for _, trials := range []int{4, 6} {
		// A trial leaves 64 KiB and its logs: two fit, and the best is one of them.
		r, err := local.Run(t.Context(), local.Options{Study: parse(t, file, trials), State: state, GPUs: "none", KeepTrials: 170 << 10})
		if err != nil {
			t.Fatal(err)
		}
		if r.Best == nil || r.Best.Number != 1 || r.Status.Counts.Completed != trials {
			t.Fatalf("the best trial is %+v, with %+v", r.Best, r.Status.Counts)
		}
		left, err := filepath.Glob(filepath.Join(state, "worker", "trials", r.Study.ID, "*", "1", "model"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range left {
			left[i] = filepath.Base(filepath.Dir(filepath.Dir(left[i])))
		}
		if diff := cmp.Diff([]string{"1", strconv.Itoa(trials)}, left); diff != "" {
			t.Errorf("of %d trials, those with files (-want +got):\n%s", trials, diff)
		}
		if left, err := filepath.Glob(filepath.Join(state, "checkpoints", "*", "*")); err != nil || len(left) > 0 {
			t.Errorf("the trials wrote no checkpoints, but there are %q, %v", left, err)
		}
	}
}

// ask queries the study in a state directory, through the run that has it open or from
// the directory itself. It checks that changes are refused.
func ask(t *testing.T, state string, want fantasiav1.StudyState, counts *fantasiav1.TrialCounts) {
	t.Helper()
	c, err := local.Connect(t.Context(), state)
	if err != nil {
		t.Errorf("connect to the state: %v", err)
		return
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the connection to the state: %v", err)
		}
	}()
	client := fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: c.Transport}, "http://state")
	page, err := client.ListStudies(t.Context(), connect.NewRequest(&fantasiav1.ListStudiesRequest{}))
	if err != nil || len(page.Msg.GetStudies()) != 1 {
		t.Errorf("list the studies: %v, %v", page, err)
		return
	}
	s := page.Msg.GetStudies()[0]
	if s.GetState() != want || !proto.Equal(s.GetTrials(), counts) {
		t.Errorf("the study is %s with %v; want %s with %v", s.GetState(), s.GetTrials(), want, counts)
	}
	_, err = client.StopStudy(t.Context(), connect.NewRequest(&fantasiav1.StopStudyRequest{Name: s.GetName()}))
	if connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("stop a study of a run: %v; want it refused", err)
	}
}
