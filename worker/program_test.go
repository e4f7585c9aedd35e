package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

var helpers = map[string]func(){
	"killed": killed,
	"stream": stream,
}

// killed is a worker whose results do not get through, and which is killed with
// one in its spool. Its folder is the first argument.
func killed() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	broker := membus.New(membus.Options{Fault: func(e membus.Event) membus.Fault {
		if e.Op == membus.OpResult {
			fail(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
		return membus.Fault{Lost: e.Op == membus.OpResult}
	}})
	ctx, leader := context.Background(), broker.Leader()
	fail(leader.Setup(ctx, []string{testPool}))
	fail(leader.Fence(ctx, 1))
	fail(leader.Assign(ctx, []*messaging.Assignment{script(1, echo)}))
	bus, err := broker.Worker(testWorker, testPool)
	fail(err)
	o := DefaultOptions()
	o.Name, o.Pool, o.StateDir, o.Bus, o.AllowStudyCommands = testWorker, testPool, os.Args[1], bus, true
	w, err := New(o)
	fail(err)
	fail(w.Run(ctx))
}

// stream is a program for stream mode that does nothing.
func stream() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var line struct {
			Fantasia struct{ Trial int }
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			panic(err)
		}
		fmt.Printf("{\"fantasia\": {\"trial\": %d, \"metrics\": {\"error\": 1}, \"done\": true}}\n", line.Fantasia.Trial)
	}
}

const echo = `echo '{"fantasia": {"metrics": {"error": 1}}}'`

// script is an assignment that runs a shell script.
func script(trial int, text string) *messaging.Assignment {
	a := assigned(trial)
	a.Run.Command = []string{"/bin/sh", "-c", text}
	return a
}

// A program gets neither the credentials of its worker nor where its telemetry goes with
// which password, unless the operator passes them.
func TestProgramsGetNoCredentials(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret")
	t.Setenv("DATA_DIR", "/data")
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	r.options.PassEnv = []string{"DATA_*"}
	r.start()
	r.offer(script(1, `if env | grep -q secret || [ "$DATA_DIR" != /data ] || [ -z "$PATH" ]; then exit 9; fi; `+echo))
	r.untilTold(1)
	if told := r.told(1); told[messaging.OutcomeCompleted] != 1 {
		t.Errorf("told %v", told)
	}
}

func TestSpoolSurvivesAKill(t *testing.T) {
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, r.options.StateDir)
	cmd.Env = append(os.Environ(), helperVariable+"=killed")
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the worker was not killed: %v\n%s", err, out)
	}
	if len(r.spooled()) != 1 {
		t.Fatalf("spooled %v", r.spooled())
	}
	bus, err := r.broker.Worker(testWorker, testPool)
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	r.change(func() { r.silent = true })
	if n, err := FlushSpool(t.Context(), bus, r.options.StateDir); n != 1 || err != nil {
		t.Errorf("FlushSpool: %d, %v", n, err)
	}
	r.untilTold(1)
	if len(r.spooled()) != 1 {
		t.Error("a result left the spool without a receipt")
	}
	r.change(func() { r.silent, r.results = false, nil })
	r.options.HeartbeatInterval = 20 * time.Millisecond // the rig looks at each heartbeat
	r.start()
	r.untilTold(1)
	r.offer(script(1, "exit 9"), script(2, echo)) // trial 1 is not run again
	r.untilTold(2)
	r.until("receipts", func() bool { return len(r.spooled()) == 0 })
	if told := r.told(1); len(told) != 1 || told[messaging.OutcomeCompleted] == 0 {
		t.Errorf("told %v", told)
	}
}

func TestLeavingHandsProgramsBackWithTheirCheckpoint(t *testing.T) {
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	leave := r.start()
	r.offer(script(1, `trap 'echo "{\"fantasia\": {\"checkpoint\": \"epoch-3\"}}"; exit 0' TERM
		for i in 1 2; do echo "{\"fantasia\": {\"step\": $i, \"metrics\": {\"error\": 0.5}}}"; done
		while :; do sleep 0.05; done`))
	r.until("a measurement", func() bool { return len(r.measured) > 0 })
	leave()
	r.untilTold(1)
	result := r.seen().results[0]
	if result.Outcome != messaging.OutcomeHandedBack || result.Checkpoint != "epoch-3" || len(result.Values) > 0 {
		t.Errorf("%+v", result)
	}
}

func TestTraceReachesTheProgram(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	defer provider.Shutdown(context.Background())
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	r.options.Tracer = provider.Tracer("test")
	leave := r.start()
	a := script(1, `echo "{\"fantasia\": {\"checkpoint\": \"$TRACEPARENT\", \"metrics\": {\"error\": 1}}}"`)
	a.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	r.offer(a)
	r.untilTold(1)
	leave()
	byName := map[string]sdktrace.ReadOnlySpan{}
	for _, span := range spans.Ended() {
		byName[span.Name()] = span
		parent := "00f067aa0ba902b7"
		if span.Name() == telemetry.SpanSend { // within the report, which the leader emits
			parent = telemetry.ChildID(span.SpanContext().TraceID(), telemetry.SpanReport, a.Attempt).String()
		}
		if span.Parent().SpanID().String() != parent || span.SpanContext().TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("span %s is not a child of the assignment's", span.Name())
		}
		if set := attribute.NewSet(span.Attributes()...); !set.HasValue(telemetry.AttrTrial) {
			t.Errorf("span %s does not name its trial", span.Name())
		}
	}
	for _, name := range []string{telemetry.SpanClaim, telemetry.SpanEvaluate, telemetry.SpanSend} {
		if byName[name] == nil {
			t.Fatalf("no span %q", name)
		}
	}
	result, claim, evaluate := r.seen().results[0], byName[telemetry.SpanClaim], byName[telemetry.SpanEvaluate]
	if !claim.StartTime().Equal(result.Claimed) || !claim.EndTime().Equal(result.Started) ||
		!evaluate.StartTime().Equal(result.Started) || !evaluate.EndTime().Equal(result.Ended) {
		t.Errorf("the spans lie from %v to %v and from %v to %v, the result says that it was claimed at %v, started at %v and ended at %v",
			claim.StartTime(), claim.EndTime(), evaluate.StartTime(), evaluate.EndTime(), result.Claimed, result.Started, result.Ended)
	}
	inProgram := traceOf(trace.ContextWithSpanContext(t.Context(), byName[telemetry.SpanEvaluate].SpanContext())).Traceparent
	if got := r.seen().results[0].Checkpoint; got != inProgram {
		t.Errorf("the program's TRACEPARENT is %q, want the span %q", got, inProgram)
	}
}

// BenchmarkWorker is what a trial costs from assignment to receipt in a worker
// with 8 slots over a bus in memory, with a no-op program in stream mode.
func BenchmarkWorker(b *testing.B) {
	r := newRig(b, nil, membus.Options{})
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	r.options.AllowStudyCommands, r.options.Slots = true, 8
	r.start()
	next := func(trial int) *messaging.Assignment {
		a := assigned(trial)
		a.Run.Command, a.Run.Mode = []string{self}, study.ModeStream
		a.Run.Env = map[string]string{helperVariable: "stream"}
		return a
	}
	for trial := 1; trial <= 16; trial++ {
		r.offer(next(trial))
	}
	r.until("programs started", func() bool { return len(r.results) == 16 })
	trial, begun := 16, time.Now()
	for b.Loop() {
		trial++
		r.offer(next(trial))
		r.until("a slot", func() bool { return len(r.results) > trial-16 })
	}
	r.until("all results", func() bool { return len(r.results) >= trial })
	b.ReportMetric(float64(trial-16)/time.Since(begun).Seconds(), "trials/s")
}
