package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// helperVariable makes the test binary act as a program.
const helperVariable = "COMMAND_TEST_HELPER"

func TestMain(m *testing.M) {
	if helper := os.Getenv(helperVariable); helper != "" {
		helpers[helper]()
		return
	}
	goleak.VerifyTestMain(m)
}

// helpers are programs for which /bin/sh would be too slow or too limited.
var helpers = map[string]func(){
	"garbage":  garbage,
	"stubborn": stubborn,
	"stream":   streamProgram,
	"learner":  learner,
	"supervisor": func() {
		e, err := New(Options{Dir: os.Args[1], AllowStudyCommands: true, Slots: 1})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		e.Evaluate(context.Background(), task(assignment("sh", "-c", os.Args[2], os.Args[3])))
	},
}

// garbage writes 100 MB: lines, one very long line, and a value at its end.
func garbage() {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	line := strings.Repeat("\x80garbage {\"", 10) + "\n"
	for range 50_000_000 / len(line) {
		out.WriteString(line)
	}
	for range 50 {
		out.WriteString(strings.Repeat("x", 1_000_000))
	}
	out.WriteString("\n" + `{"fantasia": {"metrics": {"error": 0.5}}}` + "\n")
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// stubborn ignores SIGTERM, starts a child that also does and holds its outputs, and
// prints on stdout that both are ready.
func stubborn() {
	// Without cgo, the runtime ends a process in which nothing can happen any more.
	forever := time.After(24 * time.Hour)
	signal.Ignore(syscall.SIGTERM)
	if os.Getenv("DEPTH") == "" {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "DEPTH=1")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		if os.Getenv("ORPHAN") != "" {
			<-forever // until the child kills this process
		}
	} else {
		fmt.Printf("{\"fantasia\": {\"step\": 1, \"metrics\": {\"pid\": %d}}}\n", os.Getpid())
		if os.Getenv("ORPHAN") != "" {
			_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
		}
	}
	<-forever
}

// streamProgram squares x; its parameter "do" makes it misbehave.
func streamProgram() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var line struct {
			Fantasia struct {
				Trial, Attempt int
				Seed           uint64
				Parameters     struct {
					X  float64
					Do string
				}
			}
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			fmt.Fprintln(os.Stderr, "bad line:", err)
			os.Exit(3)
		}
		f := line.Fantasia
		switch f.Parameters.Do {
		case "die":
			fmt.Fprintln(os.Stderr, "boom")
			os.Exit(3)
		case "leave":
			os.Exit(0)
		case "done and die":
			fmt.Printf("{\"fantasia\": {\"trial\": %d, \"metrics\": {\"error\": 9, \"pid\": %d}, \"done\": true}}\n", f.Trial, os.Getpid())
			os.Exit(4)
		case "hang":
			<-time.After(24 * time.Hour)
		case "infeasible":
			fmt.Printf("{\"fantasia\": {\"trial\": %d, \"infeasible\": \"too big\"}}\n", f.Trial)
		case "error":
			fmt.Printf("{\"fantasia\": {\"trial\": %d, \"error\": \"bad luck\"}}\n", f.Trial)
		case "mumble":
			fmt.Printf("{\"fantasia\": {\"trial\": %d, \"metrics\": {\"error\": 0.5}}}\n", f.Trial)
			fmt.Printf("{\"fantasia\": {\"trial\": %d, \"metrics\": {\"error\": \"n/a\"}, \"done\": true}}\n", f.Trial)
		case "mumble to the end":
			fmt.Printf("{\"fantasia\": {\"trial\": %d, \"metrics\": {\"error\": None}, \"done\": true}}\n", f.Trial)
		case "nothing":
			fmt.Printf("{\"fantasia\": {\"trial\": %d, \"done\": true}}\n", f.Trial)
		default:
			fmt.Printf("working on %d, pid %d\n", f.Trial, os.Getpid())
			fmt.Printf("{\"fantasia\": {\"trial\": %d, \"metrics\": {\"error\": 77}, \"done\": true}}\n", f.Trial+1000)
			fmt.Printf("{\"fantasia\": {\"trial\": %d, \"metrics\": {\"error\": %g, \"pid\": %d}, \"done\": true}}\n",
				f.Trial, f.Parameters.X*f.Parameters.X, os.Getpid())
		}
	}
}

// assignment returns trial 7, attempt 1, to be run by a command.
func assignment(argv ...string) *messaging.Assignment {
	return &messaging.Assignment{
		Version:   messaging.SchemaVersion,
		AttemptID: messaging.AttemptID{Study: "study-id", Trial: 7, Attempt: 1, Nonce: "n"},
		Pool:      "default", StudyName: "digits", Seed: 42,
		Parameters:     study.Point{"lr": 0.001, "x": 3.0},
		ParameterOrder: []string{"lr", "x"},
		Objective:      study.Objective{Metric: "error", Direction: study.Minimize},
		Run:            study.TrialTemplate{Command: argv, Mode: study.ModeProcess, Grace: study.Duration(5 * time.Second)},
	}
}

// shell returns an assignment that runs a script.
func shell(script string) *messaging.Assignment { return assignment("/bin/sh", "-c", script) }

// helper returns an assignment that runs the test binary as a helper.
func helper(t testing.TB, name string, env ...string) *messaging.Assignment {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := assignment(self)
	a.Run.Env = map[string]string{helperVariable: name}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		a.Run.Env[name] = value
	}
	return a
}

func task(a *messaging.Assignment) evaluation.Task {
	return evaluation.Task{Assignment: a, Worker: "w", Measure: func(int64, map[string]float64) {}, Kill: make(chan struct{})}
}

func newEvaluator(t testing.TB, change func(*Options)) *Evaluator {
	t.Helper()
	o := Options{Dir: t.TempDir(), AllowStudyCommands: true, Slots: 1}
	if change != nil {
		change(&o)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// evaluate runs an assignment to its end.
func evaluate(t testing.TB, a *messaging.Assignment) evaluation.Ending {
	t.Helper()
	return newEvaluator(t, nil).Evaluate(t.Context(), task(a))
}

// want checks an ending's outcome and reason, and that its message contains all parts.
func want(t testing.TB, e evaluation.Ending, outcome messaging.Outcome, reason string, parts ...string) {
	t.Helper()
	message := ""
	if e.Failure != nil {
		message = e.Failure.Message
		if e.Failure.Reason != reason {
			t.Errorf("reason %q, want %q", e.Failure.Reason, reason)
		}
	} else if reason != "" {
		t.Errorf("no failure, want %q", reason)
	}
	if e.Outcome != outcome {
		t.Errorf("outcome %q, want %q; message: %s", e.Outcome, outcome, message)
	}
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("message lacks %q: %s", part, message)
		}
	}
	if len(message) > messaging.MaxMessage {
		t.Errorf("a message of %d bytes", len(message))
	}
	if e.Outcome == messaging.OutcomeCompleted && len(e.Values) == 0 {
		t.Error("completed without a value")
	}
}

// reported collects measurements and signals the first.
type reported struct {
	mu    sync.Mutex
	all   []string
	first chan map[string]float64
}

func watch(j *evaluation.Task) *reported {
	r := &reported{first: make(chan map[string]float64, 1)}
	j.Measure = func(step int64, metrics map[string]float64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(metrics)) {
			r.all = append(r.all, fmt.Sprintf("%d %s=%v", step, name, metrics[name]))
		}
		select {
		case r.first <- metrics:
		default:
		}
	}
	return r
}

// gone waits until a process has ended; zombies count as ended.
func gone(t testing.TB, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("process %d still runs: %s", pid, stat)
		}
	}
}
