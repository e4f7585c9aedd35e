package command

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/device"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/family"
)

const say = `report() { echo "{\"fantasia\": {\"metrics\": {\"error\": $1}}}"; }; `

func TestWhatAProgramSays(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		outcome      messaging.Outcome
		value        float64
		reason       string
		parts        []string
	}{
		{"a value", say + `report 0.5`, messaging.OutcomeCompleted, 0.5, "", nil},
		{"the last of several", say + `report 0.5; report 0.25`, messaging.OutcomeCompleted, 0.25, "", nil},
		{"half a last line", say + `printf 'loss 3 '; printf %s "$(report 0.5)"`, messaging.OutcomeCompleted, 0.5, "", nil},
		{"in the report file", `echo '{"fantasia": {"metrics": {"error": 0.5}}}' >> $FANTASIA_REPORT`, messaging.OutcomeCompleted, 0.5, "", nil},
		{"half a line in the report file", `printf %s '{"fantasia": {"metrics": {"error": 0.5}}}' >> $FANTASIA_REPORT`,
			messaging.OutcomeCompleted, 0.5, "", nil},
		{"NaN", say + `report NaN`, messaging.OutcomeInfeasible, 0, messaging.ReasonDiverged, []string{`"error" is NaN`}},
		{"infinity", say + `report Infinity`, messaging.OutcomeInfeasible, 0, messaging.ReasonDiverged, []string{"+Inf"}},
		{"a C program's NaN", say + `report 0.01; report -nan`, messaging.OutcomeInfeasible, 0, messaging.ReasonDiverged,
			[]string{`"error" is NaN`}},
		{"a word after a number", say + `report 0.01; report '"N/A"'`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue,
			[]string{`"error" is "N/A", not a number: line 2 of stdout is "{\"fantasia`}},
		{"None after a number", say + `report 0.01; report None`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue,
			[]string{`a report with "error" cannot be read: line 2 of stdout`}},
		{"a word in the report file", `echo '{"fantasia": {"metrics": {"error": "high"}}}' >> $FANTASIA_REPORT`, messaging.OutcomeFailed, 0,
			messaging.ReasonNoValue, []string{"line 1 of the report file"}},
		{"a word before a number", say + `report '"high"'; report 0.5`, messaging.OutcomeCompleted, 0.5, "", nil},
		{"a metric without metrics", `echo '{"fantasia": {"error": 0.25}}'`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue,
			[]string{`line 1 of stdout: "error" is a number outside of "metrics": write {"fantasia": {"metrics": {"error": 0.25}}}`}},
		{"one beside metrics", `echo '{"fantasia": {"metrics": {"lr": 1}}}'; echo '{"fantasia": {"error": 0.25}}'`, messaging.OutcomeFailed, 0,
			messaging.ReasonNoValue,
			[]string{`saw "lr", and an unreadable report: line 2 of stdout: "error" is a number outside of "metrics"`}},
		{"a long line", `head -c 1048577 /dev/zero | tr '\0' x`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue,
			[]string{"line 1 of stdout: it is longer than 1048576 bytes"}},
		{"nothing", `true`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue,
			[]string{`no "error"; the program wrote nothing; see `, "stderr.log"}},
		{"another metric", `echo '{"fantasia": {"metrics": {"val_error": 1}}}'`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue,
			[]string{`no "error"; saw "val_error"; see `}},
		{"garbage", `echo hello; echo hello`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue,
			[]string{`saw no report in 2 lines (12 bytes) of output`, "hello"}},
		{"a value for people", `echo 'epoch 3: Error: 0.25'`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue,
			[]string{`"Error: 0.25" can be read with spec.trial.metrics: {pattern: '(?:^|\s)Error:\s+(?P<error>`}},
		{"half a report", `printf '{"fantasia": {"metrics": {"er'`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue,
			[]string{"unreadable report", "closing brace"}},
		{"a report on stderr is none", say + `report 0.5 >&2`, messaging.OutcomeFailed, 0, messaging.ReasonNoValue, nil},
		{"an exit code", say + `report 0.5; echo boom >&2; exit 3`, messaging.OutcomeFailed, 0, messaging.ReasonExit,
			[]string{"exit code 3", "stderr.log", "boom"}},
		{"last words on stdout", `echo boom; exit 3`, messaging.OutcomeFailed, 0, messaging.ReasonExit, []string{"boom"}},
		{"a signal", `kill -SEGV $$`, messaging.OutcomeFailed, 0, messaging.ReasonSignal, []string{"signal 11"}},
		{"infeasible", `echo '{"fantasia": {"infeasible": "out of memory"}}'; exec sleep 60`, messaging.OutcomeInfeasible, 0,
			messaging.ReasonInfeasible, []string{"out of memory"}},
		{"infeasible and an exit code", `echo '{"fantasia": {"infeasible": "no"}}'; exit 1`, messaging.OutcomeInfeasible, 0,
			messaging.ReasonInfeasible, nil},
		{"retry", `echo '{"fantasia": {"retry": "preempted"}}'; exec sleep 60`, messaging.OutcomeHandedBack, 0, messaging.ReasonRetry,
			[]string{"preempted"}},
		{"an error that it reports", `echo '{"fantasia": {"error": "bad luck"}}'; exec sleep 60`, messaging.OutcomeFailed, 0,
			messaging.ReasonReported, []string{"bad luck"}},
		{"done, which is of stream mode", say + `echo '{"fantasia": {"done": true}}'; sleep 0.05; report 0.5`, messaging.OutcomeCompleted, 0.5,
			"", nil},
		{"exit 75", say + `report 0.5; exit 75`, messaging.OutcomeHandedBack, 0, messaging.ReasonRetry, []string{"75"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := evaluate(t, shell(tt.script))
			want(t, e, tt.outcome, tt.reason, tt.parts...)
			if len(e.Values) > 0 && e.Values.First() != tt.value {
				t.Errorf("value %v, want %v", e.Values.First(), tt.value)
			}
		})
	}
}

func TestExitCodesAndSignalsAreTold(t *testing.T) {
	if e := evaluate(t, shell(`exit 3`)); e.Failure.ExitCode == nil || *e.Failure.ExitCode != 3 || e.Failure.Signal != "" {
		t.Errorf("exit code: %+v", e.Failure)
	}
	stopped := evaluate(t, shell(`echo '{"fantasia": {"infeasible": "no"}}'; exec sleep 60`))
	if stopped.Failure.ExitCode != nil || stopped.Failure.Signal != "" {
		t.Errorf("a signal that the worker sent is told: %+v", stopped.Failure)
	}
	if e := evaluate(t, shell(`kill -KILL $$`)); e.Failure.ExitCode != nil || e.Failure.Signal != "killed" {
		t.Errorf("signal: %+v", e.Failure)
	}
}

func TestMeasurements(t *testing.T) {
	a := shell(`for s in 1 2 2 3; do echo "{\"fantasia\": {\"step\": $s, \"metrics\": {\"error\": 0.$s, \"lr\": NaN}}}"; done`)
	j := task(a)
	seen := watch(&j)
	e := newEvaluator(t, nil).Evaluate(t.Context(), j)
	want(t, e, messaging.OutcomeCompleted, "")
	if diff := cmp.Diff([]string{"1 error=0.1", "1 lr=NaN", "2 error=0.2", "2 lr=NaN", "3 error=0.3", "3 lr=NaN"}, seen.all); diff != "" {
		t.Errorf("measurements (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"error": 0.3}, e.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestSecondValuesAreWarnedOfOnce(t *testing.T) {
	var log bytes.Buffer
	e := newEvaluator(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	a := shell(`for i in 1 2 3; do echo '{"fantasia": {"step": 1, "metrics": {"error": 0.'$i'}}}'; done`)
	ending := e.Evaluate(t.Context(), task(a))
	if want(t, ending, messaging.OutcomeCompleted, messaging.ReasonReports,
		`warning: steps must grow: a second value of "error" for step 1 was left out (2 times in all)`); ending.Values.First() != 0.1 {
		t.Errorf("value %v, want the first", ending.Values.First())
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "second value") {
		t.Errorf("%d warnings, want one of a second value:\n%s", n, log.String())
	}
}

func TestStepsThatDoNotGrowAreToldOf(t *testing.T) {
	for steps, warning := range map[string]string{
		"1 2 4": "", "-3 -1 0": "", "9223372036854775806 9223372036854775807": "",
		"3 1":   `step 1 of "error" came after step 3`,
		"1 3 1": `a second value of "error" for step 1 was left out`,
	} {
		reason := ""
		if warning != "" {
			reason = messaging.ReasonReports
		}
		want(t, evaluate(t, shell(`for s in `+steps+`; do echo "{\"fantasia\": {\"step\": $s, \"metrics\": {\"error\": 0.$((i += 1))}}}"; done`)),
			messaging.OutcomeCompleted, reason, warning)
	}
}

func TestMetricsPattern(t *testing.T) {
	a := shell(`echo epoch 1 val_err=0.5; printf '\repoch 2 val_err=0.4\repoch 3 val_err=0.3' >&2`)
	a.Run.Metrics = &study.Metrics{Pattern: `val_err=(?P<error>\S+)`}
	a.Objective.Take = study.TakeBest
	e := evaluate(t, a)
	want(t, e, messaging.OutcomeCompleted, "")
	if e.Values.First() != 0.3 {
		t.Errorf("value %v, want 0.3", e.Values.First())
	}
	a = shell(`echo val_err: 0.5`)
	a.Run.Metrics = &study.Metrics{Pattern: `val_err=(?P<error>\S+)`}
	want(t, evaluate(t, a), messaging.OutcomeFailed, messaging.ReasonNoValue, "no match of metrics.pattern")
}

// Event files of TensorFlow and tensorboardX (worker/report/tfevent/testdata) are read while the program runs and at
// its end.
func TestMetricsEvents(t *testing.T) {
	testdata, err := filepath.Abs("../report/tfevent/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, script, events, metric string
		outcome                      messaging.Outcome
		value                        float64
		parts                        []string
	}{
		{"TensorFlow 1", `mkdir $FANTASIA_TRIAL_DIR/logs; cp -r ` + testdata + `/tensorflow1 $FANTASIA_TRIAL_DIR/logs`, "logs", "loss",
			messaging.OutcomeCompleted, float64(float32(0.2)), nil},
		{"NaN in TensorFlow 2", `cp -r ` + testdata + `/tensorflow $FANTASIA_TRIAL_DIR/logs`, "logs", "validation/epoch_loss",
			messaging.OutcomeInfeasible, 0, []string{`"validation/epoch_loss" is NaN`}},
		{"a tag with a slash", `cp -r ` + testdata + `/tensorboardX $FANTASIA_TRIAL_DIR/logs`, "logs", "val/loss", messaging.OutcomeCompleted,
			float64(float32(0.4)), nil},
		{"other tags", `cp -r ` + testdata + `/tensorboardX $FANTASIA_TRIAL_DIR/logs`, "logs", "error", messaging.OutcomeFailed, 0,
			[]string{`no "error"; saw "loss", "val/loss"`}},
		{"two folders", `cp -r ` + testdata + `/tensorflow $FANTASIA_TRIAL_DIR/logs`, "logs", "epoch_loss", messaging.OutcomeFailed, 0,
			[]string{"both train/epoch_loss and validation/epoch_loss"}},
		{"no folder", `true`, "logs", "loss", messaging.OutcomeFailed, 0, []string{"no metrics.events: ", "logs does not exist"}},
		{"a path of containers", `true`, "/train", "loss", messaging.OutcomeFailed, 0,
			[]string{`spec.trial.metrics.events is "/train", a path that only the container of a Job can have`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := shell(tt.script)
			a.Run.Metrics, a.Objective.Metric = &study.Metrics{Events: tt.events}, tt.metric
			e := evaluate(t, a)
			reason := map[messaging.Outcome]string{messaging.OutcomeFailed: messaging.ReasonNoValue,
				messaging.OutcomeInfeasible: messaging.ReasonDiverged}[tt.outcome]
			if tt.events == "/train" {
				reason = messaging.ReasonCommand
			}
			want(t, e, tt.outcome, reason, tt.parts...)
			if len(e.Values) > 0 && e.Values.First() != tt.value {
				t.Errorf("value %v, want %v", e.Values.First(), tt.value)
			}
		})
	}
}

func TestMetricsFile(t *testing.T) {
	for _, tt := range []struct {
		name, script, file string
		outcome            messaging.Outcome
		reason             string
		parts              []string
	}{
		{"a file", `mkdir $FANTASIA_TRIAL_DIR/out; echo '{"error": 0.5, "name": "x"}' > $FANTASIA_TRIAL_DIR/out/m.json`, "out/m.json",
			messaging.OutcomeCompleted, "", nil},
		{"a word", `echo '{"fantasia": {"metrics": {"error": 1}}}'; echo '{"error": "none"}' > $FANTASIA_TRIAL_DIR/m.json`, "m.json",
			messaging.OutcomeFailed, messaging.ReasonNoValue, []string{`"error" is "none", not a number: metrics.file is `}},
		{"lines", `printf '{"error": 0.75}\n{"error": 0.5}\n' > $FANTASIA_TRIAL_DIR/m.json`, "m.json", messaging.OutcomeCompleted, "", nil},
		{"lines with a rest", `printf '{"error": 0.75}\n{"error": 0.5}\n{"error": 0.' > $FANTASIA_TRIAL_DIR/m.json`, "m.json",
			messaging.OutcomeCompleted, messaging.ReasonReports, []string{"warning: line 3 of metrics.file is not a whole JSON object"}},
		{"NaN", `echo '{"error": NaN}' > $FANTASIA_TRIAL_DIR/m.json`, "m.json", messaging.OutcomeInfeasible, messaging.ReasonDiverged, nil},
		{"none", `true`, "m.json", messaging.OutcomeFailed, messaging.ReasonNoValue, []string{"m.json does not exist"}},
		{"no object", `echo 0.5 > $FANTASIA_TRIAL_DIR/m.json`, "m.json", messaging.OutcomeFailed, messaging.ReasonNoValue,
			[]string{"not a JSON object"}},
		{"outside of the folder", `true`, "../../../../../m.json", messaging.OutcomeFailed, messaging.ReasonNoValue, []string{"not below"}},
		{"a pipe without a writer", `mkfifo $FANTASIA_TRIAL_DIR/m.json`, "m.json", messaging.OutcomeFailed, messaging.ReasonNoValue, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := shell(tt.script)
			a.Run.Metrics = &study.Metrics{File: tt.file}
			want(t, evaluate(t, a), tt.outcome, tt.reason, tt.parts...)
		})
	}
}

func TestHowParametersReachAProgram(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	a := assignment("/bin/sh", "-c", `env > $0.env; pwd > $0.pwd; cat "$1" > $0.file; shift; echo "$@" > $0.args; `+say+`report 1`,
		out, "${file}", "--rate=${lr}", "${args}")
	a.Run.Env = map[string]string{"DATA": "/data", "FANTASIA_SEED": "0"}
	a.Run.Workdir = dir
	a.Checkpoint = "s3://bucket/7"
	e := newEvaluator(t, func(o *Options) {
		o.Slot, o.Slots, o.Devices = 2, 10_000, &device.Slot{Environ: []string{"CUDA_VISIBLE_DEVICES=3"}, Unset: []string{"HIP_VISIBLE_DEVICES"}}
		o.Environ = append(os.Environ(), "FANTASIA_NATS=nats://user:password@host", "OTEL_SERVICE_NAME=w", "HIP_VISIBLE_DEVICES=3")
	})
	j := task(a)
	j.Trace = messaging.TraceContext{Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Tracestate: "a=b"}
	ending := e.Evaluate(t.Context(), j)
	want(t, ending, messaging.OutcomeCompleted, "")
	if ending.Checkpoint != a.Checkpoint {
		t.Errorf("checkpoint %q, want the one before", ending.Checkpoint)
	}
	read := func(suffix string) string {
		data, err := os.ReadFile(out + suffix)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	if got := read(".args"); got != "--rate=0.001 --x=3" {
		t.Errorf("argv %q", got)
	}
	if got := read(".pwd"); got != dir {
		t.Errorf("working directory %q, want %q", got, dir)
	}
	var file map[string]float64
	if err := json.Unmarshal([]byte(read(".file")), &file); err != nil || file["lr"] != 0.001 || file["x"] != 3 {
		t.Errorf("parameter file: %v, %v", file, err)
	}
	env := map[string]string{}
	for line := range strings.Lines(read(".env") + "\n") {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		env[name] = value
	}
	place := filepath.Join(e.options.Dir, "trials", "study-id", "7", "1")
	for name, value := range map[string]string{
		"DATA": "/data", "OTEL_SERVICE_NAME": "w", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": "3",
		"FANTASIA_STUDY": "digits", "FANTASIA_TRIAL": "7", "FANTASIA_ATTEMPT": "1", "FANTASIA_SLOT": "2", "FANTASIA_SEED": "42",
		"FANTASIA_TRIAL_DIR": place, "FANTASIA_CHECKPOINT_DIR": filepath.Join(e.options.Dir, "checkpoints", "study-id", "7"),
		"FANTASIA_CHECKPOINT": "s3://bucket/7", "FANTASIA_REPORT": filepath.Join(place, "reports.jsonl"),
		"FANTASIA_PARAM_LR": "0.001", "FANTASIA_PARAM_X": "3", "FANTASIA_PARAMETERS": `{"lr":0.001,"x":3.0}`,
		"TRACEPARENT": j.Trace.Traceparent, "TRACESTATE": "a=b",
	} {
		if env[name] != value {
			t.Errorf("%s=%q, want %q", name, env[name], value)
		}
	}
	if value, ok := env["HIP_VISIBLE_DEVICES"]; ok {
		t.Errorf("HIP_VISIBLE_DEVICES=%s, which the slot's devices exclude, reaches the program", value)
	}
	if _, ok := env["FANTASIA_NATS"]; ok {
		t.Error("the worker's credentials reach the program")
	}
}

func TestWhatIsSetIsKept(t *testing.T) {
	a := shell(`test "$OMP_NUM_THREADS $PYTHONUNBUFFERED" = "7 0" && ` + `{ ` + say + `report 1; }`)
	a.Run.Env = map[string]string{"PYTHONUNBUFFERED": "0"}
	e := newEvaluator(t, func(o *Options) { o.Environ = append(os.Environ(), "OMP_NUM_THREADS=7") })
	want(t, e.Evaluate(t.Context(), task(a)), messaging.OutcomeCompleted, "")
}

// A study must not choose what runs on a worker that does not permit studies' commands:
// an environment such as LD_PRELOAD would suffice.
func TestOwnCommandBeatsTheStudys(t *testing.T) {
	a := assignment("study-command")
	a.Run.Env = map[string]string{"EVIL": "1"}
	a.Run.Workdir = "/nowhere"
	own := []string{"/bin/sh", "-c", `test -z "$EVIL" && ` + `{ ` + say + `report ${x}; }`}
	e := newEvaluator(t, func(o *Options) { o.AllowStudyCommands, o.Command = false, own })
	if err := e.Accept(a); err != nil {
		t.Error(err)
	}
	ending := e.Evaluate(t.Context(), task(a))
	want(t, ending, messaging.OutcomeCompleted, "")
	if len(ending.Values) > 0 && ending.Values.First() != 3 {
		t.Errorf("value %v, want 3", ending.Values.First())
	}
	e = newEvaluator(t, func(o *Options) { o.AllowStudyCommands = false })
	if err := e.Accept(a); err == nil {
		t.Error("a study's command is accepted where it is not allowed")
	}
}

func TestProgramsThatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("echo"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := shell("true")
	missing.Run.Workdir = filepath.Join(dir, "missing")
	pattern := shell("true")
	pattern.Run.Metrics = &study.Metrics{Pattern: "("}
	for _, tt := range []struct {
		name string
		a    *messaging.Assignment
		part string
	}{
		{"not found", assignment("no-such-program", "-x"), "cannot run no-such-program -x"},
		{"not found by path", assignment("/no/such/program"), "is it installed"},
		{"not executable", assignment(plain), "chmod +x"},
		{"no working directory", missing, "is not a directory on this worker"},
		{"a parameter that is none", assignment("echo", "${y}"), `"y"`},
		{"a bad pattern", pattern, "metrics pattern"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want(t, evaluate(t, tt.a), messaging.OutcomeFailed, messaging.ReasonCommand, tt.part)
		})
	}
}

func TestFloodOfGarbageIsBounded(t *testing.T) {
	const limit = 1 << 20
	e := newEvaluator(t, func(o *Options) { o.LogLimit = limit })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ending := e.Evaluate(t.Context(), task(helper(t, "garbage")))
	runtime.ReadMemStats(&after)
	want(t, ending, messaging.OutcomeCompleted, "")
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	log, err := os.ReadFile(filepath.Join(ending.Logs, "stdout.log"))
	if err != nil {
		t.Fatal(err)
	}
	if len(log) < limit || len(log) > limit+2*tailSize {
		t.Errorf("the log has %d bytes, want about %d", len(log), limit)
	}
	if !strings.Contains(string(log), "further bytes were dropped") || !strings.Contains(string(log), `{"error": 0.5}`) {
		t.Error("the log says not what was dropped, or lacks the last line")
	}
}

// stopAfterFirst ends an evaluation for a cause after its first measurement, and
// returns that measurement.
func stopAfterFirst(t *testing.T, e *Evaluator, a *messaging.Assignment, cause error, kill bool) (evaluation.Ending, map[string]float64) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	j := task(a)
	killed := make(chan struct{})
	j.Kill = killed
	seen := watch(&j)
	first := make(chan map[string]float64, 1)
	go func() {
		m := <-seen.first
		first <- m
		cancel(cause)
		if kill {
			close(killed)
		}
	}()
	ending := e.Evaluate(ctx, j)
	return ending, <-first
}

func TestStopReachesTheWholeGroup(t *testing.T) {
	a := helper(t, "stubborn")
	a.Run.Grace = study.Duration(100 * time.Millisecond)
	ending, first := stopAfterFirst(t, newEvaluator(t, nil), a, evaluation.ErrTimeout, false)
	want(t, ending, messaging.OutcomeTimeout, messaging.ReasonTimeout, "timeout")
	gone(t, int(first["pid"]))
}

// A program that is stopped early is stopped like any other, and what it had reached is
// kept.
func TestPrunedProgramKeepsItsValue(t *testing.T) {
	a := shell(say + `trap 'report 0.25; exit 0' TERM; report 0.5; while true; do sleep 0.01; done`)
	ending, first := stopAfterFirst(t, newEvaluator(t, nil), a, evaluation.ErrPruned, false)
	want(t, ending, messaging.OutcomePruned, "")
	if first["error"] != 0.5 || len(ending.Values) != 1 || ending.Values[0] != 0.25 || ending.Metrics["error"] != 0.25 {
		t.Errorf("first %v, then %v and %v, want 0.5, then 0.25", first, ending.Values, ending.Metrics)
	}
	if step, ok := ending.Reached.StepOf("error"); !ok || step != 1 {
		t.Errorf("it has reached step %d (%t), want that of its second report, 1", step, ok)
	}
}

func TestKillEndsTheGrace(t *testing.T) {
	a := helper(t, "stubborn")
	a.Run.Grace = study.Duration(time.Hour)
	ending, first := stopAfterFirst(t, newEvaluator(t, nil), a, evaluation.ErrLeaving, true)
	want(t, ending, messaging.OutcomeHandedBack, messaging.ReasonLeaving)
	gone(t, int(first["pid"]))
}

// A grandchild that holds the pipes must not prevent an attempt from ending.
func TestWhatIsLeftOfTheGroupIsKilled(t *testing.T) {
	j := task(helper(t, "stubborn", "ORPHAN=1"))
	seen := watch(&j)
	ending := newEvaluator(t, nil).Evaluate(t.Context(), j)
	want(t, ending, messaging.OutcomeFailed, messaging.ReasonSignal, "signal 9")
	gone(t, int((<-seen.first)["pid"]))
}

// detached starts a process in a session of its own, and waits until its id is in a file.
func detached(t *testing.T) (script, pidFile string) {
	t.Helper()
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Fatal(err)
	}
	pidFile = filepath.Join(t.TempDir(), "pid")
	return setsid + ` /bin/sh -c 'echo $$ > ` + pidFile + `.new; mv ` + pidFile + `.new ` + pidFile + `; exec sleep 60' & while ! test -e ` +
		pidFile + `; do sleep 0.01; done; `, pidFile
}

func readPID(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// What a program leaves behind ends with the trial, however that ends, also what has left the
// program's process group and holds its outputs.
func TestDetachedProcessesEndWithTheTrial(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems only have the process group")
	}
	t.Run("at its end", func(t *testing.T) {
		script, pidFile := detached(t)
		want(t, evaluate(t, shell(say+script+`report 1`)), messaging.OutcomeCompleted, "")
		gone(t, readPID(t, pidFile))
	})
	t.Run("failed", func(t *testing.T) {
		script, pidFile := detached(t)
		want(t, evaluate(t, shell(script+`exit 3`)), messaging.OutcomeFailed, messaging.ReasonExit)
		gone(t, readPID(t, pidFile))
	})
	for cause, outcome := range map[error]messaging.Outcome{
		evaluation.ErrLeaving: messaging.OutcomeHandedBack, evaluation.ErrTimeout: messaging.OutcomeTimeout,
		evaluation.ErrCancelled: messaging.OutcomeCancelled, evaluation.ErrPruned: messaging.OutcomePruned,
	} {
		t.Run(cause.Error(), func(t *testing.T) {
			script, pidFile := detached(t)
			ending, _ := stopAfterFirst(t, newEvaluator(t, nil), shell(say+script+`report 1; exec sleep 60`), cause, false)
			if ending.Outcome != outcome {
				t.Errorf("outcome %q, want %q", ending.Outcome, outcome)
			}
			gone(t, readPID(t, pidFile))
		})
	}
	t.Run("a long-lived program", func(t *testing.T) {
		script, pidFile := detached(t)
		a := shell(script + `read line; echo '{"fantasia": {"trial": 7, "metrics": {"error": 1}, "done": true}}'; read line`)
		a.Run.Mode = study.ModeStream
		e := newEvaluator(t, nil)
		want(t, e.Evaluate(t.Context(), task(a)), messaging.OutcomeCompleted, "")
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone(t, readPID(t, pidFile))
	})
}

// SIGTERM kills the shell at once; its child saves a checkpoint first.
func TestGraceIsForTheWholeGroup(t *testing.T) {
	a := shell(`/bin/sh -c 'trap "sleep 0.2; echo {\\\"fantasia\\\": {\\\"checkpoint\\\": \\\"step-9\\\"}}; exit" TERM; ` +
		`echo {\"fantasia\": {\"metrics\": {\"error\": 1}}}; while :; do sleep 0.05; done'; true`)
	ending, _ := stopAfterFirst(t, newEvaluator(t, nil), a, evaluation.ErrLeaving, false)
	want(t, ending, messaging.OutcomeHandedBack, messaging.ReasonLeaving)
	if ending.Checkpoint != "step-9" {
		t.Errorf("checkpoint %q, want step-9", ending.Checkpoint)
	}
}

// A stopped program may exit successfully; its value comes from a partial training.
func TestStoppedProgramDoesNotComplete(t *testing.T) {
	a := shell(`trap 'exit 0' TERM; ` + say + `report 1; while :; do sleep 0.05; done`)
	for cause, outcome := range map[error]messaging.Outcome{
		evaluation.ErrLeaving:   messaging.OutcomeHandedBack,
		evaluation.ErrTimeout:   messaging.OutcomeTimeout,
		evaluation.ErrCancelled: messaging.OutcomeCancelled,
	} {
		ending, _ := stopAfterFirst(t, newEvaluator(t, nil), a, cause, false)
		if ending.Outcome != outcome || len(ending.Values) > 0 {
			t.Errorf("%v: outcome %q, value %v", cause, ending.Outcome, ending.Values)
		}
	}
}

// killSupervisor lets another process run a script in dir, which writes its process id
// to the file $0, kills that process, and returns the id.
func killSupervisor(t *testing.T, dir, script string) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pidFile := filepath.Join(dir, "pid")
	cmd := exec.Command(self, dir, script, pidFile)
	cmd.Env = append(os.Environ(), helperVariable+"=supervisor")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	pid := 0
	for pid == 0 {
		select {
		case <-tick.C:
			if data, err := os.ReadFile(pidFile); err == nil {
				pid, _ = strconv.Atoi(strings.TrimSpace(string(data))) // 0 until it is written
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the program did not start")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	return pid
}

func TestKilledWorkerLeavesNoChild(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the parent-death signal is Linux's
	}
	dir := t.TempDir()
	gone(t, killSupervisor(t, dir, `echo $$ > "$0"; exec sleep 60`))
	family.KillOrphans(dir) // it removes the program's cgroup
}

func TestOrphansAreKilledByTheNextWorker(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // only Linux tells whose child a process was
	}
	dir := t.TempDir()
	pid := killSupervisor(t, dir, `sleep 60 & echo $! > "$0"; wait`)
	leader, err := syscall.Getpgid(pid)
	if err != nil {
		t.Fatal(err)
	}
	gone(t, leader)
	if n := family.KillOrphans(t.TempDir()); n != 0 {
		t.Errorf("killed %d processes of another worker", n)
	}
	if n := family.KillOrphans(dir); n != 1 {
		t.Errorf("killed %d processes, want 1", n)
	}
	gone(t, pid)
}
