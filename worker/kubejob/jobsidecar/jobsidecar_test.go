package jobsidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writer records what is written, and signals each line.
type writer struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines chan string
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines <- strings.TrimSpace(string(p))
	return w.text.Write(p)
}

type rig struct {
	t       *testing.T
	o       Options
	log     *writer
	address string
	end     func() Summary
}

// start runs a sidecar; end ends the program and returns the summary.
func start(t *testing.T, change func(a *messaging.Assignment)) *rig {
	t.Helper()
	dir := t.TempDir()
	a := &messaging.Assignment{
		AttemptID: messaging.AttemptID{Study: "s", Trial: 3, Attempt: 1, Nonce: "n"}, StudyName: "digits",
		Parameters: study.Point{"x": 2.0}, ParameterOrder: []string{"x"},
		Objective: study.Objective{Metric: "error", Direction: study.Minimize, Take: study.TakeBest},
	}
	if change != nil {
		change(a)
	}
	text, err := Encode(a, 0, messaging.TraceContext{Traceparent: "00-1-2-01"})
	if err != nil {
		t.Fatal(err)
	}
	attempt, err := ParseAttempt(text)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, log: &writer{lines: make(chan string, 100)}}
	r.address = filepath.Join(dir, "socket")
	r.o = Options{Dir: dir, Attempt: *attempt, Listen: "unix:" + r.address, Log: r.log, Message: filepath.Join(dir, "message"),
		Events: filepath.Join(dir, "events")}
	if err := Prepare(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, r.o) }()
	r.end = sync.OnceValue(func() Summary {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		data, err := os.ReadFile(r.o.Message)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := Parse(string(data))
		if !ok {
			t.Errorf("the termination message is %q", data)
		}
		return s
	})
	t.Cleanup(func() { r.end() })
	return r
}

func (r *rig) write(text string) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.o.Dir, ReportFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		r.t.Fatal(err)
	}
}

func TestReportFile(t *testing.T) {
	r := start(t, nil)
	if info, err := os.Stat(filepath.Join(r.o.Dir, ReportFile)); err != nil || info.Mode().Perm() != 0o666 {
		t.Fatalf("the file for reports is %v (%v), want one that everybody may write", info, err)
	}
	r.write(`{"fantasia": {"metrics": {"error": 2}}}` + "\n")
	if line := <-r.log.lines; line != `{"fantasia":{"step":0,"metrics":{"error":2}}}` {
		t.Errorf("the log says %s", line)
	}
	r.write(`{"fantasia": {"metrics": {"error": 1}, "checkpoint": "c"}}` + "\n" + `{"fantasia": {"metrics": {"error": 5}}}`) // no end of line
	s := r.end()
	want := Summary{Value: new(messaging.Number(1)), Metrics: map[string]messaging.Number{"error": 5}, Checkpoint: "c", Reports: 3}
	if diff := cmp.Diff(want, s, cmpopts.IgnoreUnexported(Summary{})); diff != "" {
		t.Errorf("the summary differs (-want +got):\n%s", diff)
	}
}

// Event files are read from the folder that the sidecar was given.
func TestEvents(t *testing.T) {
	r := start(t, func(a *messaging.Assignment) {
		a.Run.Metrics, a.Objective = &study.Metrics{Events: "/train"},
			study.Objective{Metric: "loss", Direction: study.Minimize, Take: study.TakeLast}
	})
	if err := os.CopyFS(r.o.Events, os.DirFS("../../report/tfevent/testdata/tensorflow1")); err != nil {
		t.Fatal(err)
	}
	s := r.end()
	if s.Value == nil || *s.Value != messaging.Number(float32(0.2)) || s.Reports != 5 {
		t.Errorf("the summary is %+v", s)
	}
	if lines := strings.Count(r.log.text.String(), `"metrics":{"loss":`); lines != 5 || !strings.Contains(r.log.text.String(), `"step":40`) {
		t.Errorf("the log says %s", r.log.text.String())
	}
}

// The summary has the values of several objectives once each was reported.
func TestSeveralObjectives(t *testing.T) {
	for name, test := range map[string]struct {
		lines string
		want  study.Values
	}{
		"all": {`{"fantasia": {"metrics": {"error": 2}}}` + "\n" + `{"fantasia": {"metrics": {"size": Infinity}}}` + "\n",
			study.Values{2, math.Inf(1)}},
		"one is missing": {`{"fantasia": {"metrics": {"error": 2}}}` + "\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(a *messaging.Assignment) {
				a.Objective, a.Several = study.Objective{},
					[]study.Objective{{Metric: "error", Direction: study.Minimize}, {Metric: "size", Direction: study.Minimize}}
			})
			r.write(test.lines)
			s := r.end()
			if got := s.Reached(); !slices.Equal(got, test.want) || s.Value != nil {
				t.Errorf("the summary has the values %v and the value %v, want %v and none", got, s.Value, test.want)
			}
		})
	}
}

// A value that cannot be read is not passed over, neither by the summary nor by who reads the log.
func TestUnreadableValue(t *testing.T) {
	r := start(t, nil)
	r.write(`{"fantasia": {"metrics": {"error": 0.01}}}` + "\n" + `{"fantasia": {"metrics": {"error": None}}}` + "\n")
	<-r.log.lines
	reports, err := report.Parse([]byte(<-r.log.lines))
	if err == nil || len(reports) != 1 || reports[0].Unreadable["error"] == "" {
		t.Errorf("the log is read as %+v, %v", reports, err)
	}
	const want = `a report with "error" cannot be read: line 2 of the report file is`
	if s := r.end(); s.Value != nil || s.Error == nil || !strings.HasPrefix(*s.Error, want) {
		t.Errorf("the summary is %+v", s)
	}
}

func TestMetricsFile(t *testing.T) {
	r := start(t, func(a *messaging.Assignment) { a.Run.Metrics = &study.Metrics{File: "out.json"} })
	if err := os.WriteFile(filepath.Join(r.o.Dir, "out.json"), []byte(`{"error": 0.5, "note": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := r.end(); s.Value == nil || *s.Value != 0.5 {
		t.Errorf("the value is %v, want 0.5", s.Value)
	}
}

func (r *rig) post(path, body string) (int, string) {
	r.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dialer(r.address)}
	client := &http.Client{Transport: transport}
	resp, err := client.Post("http://sidecar"+path, "application/json", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// TestHTTP acts as training code with its own loop: it gets the pod's attempt once.
func TestHTTP(t *testing.T) {
	for _, tt := range []struct {
		name, end string
		want      func(s Summary) bool
	}{
		{"completed", `, "metrics": {"error": 3}`, func(s Summary) bool { return s.Value != nil && *s.Value == 3 }},
		{"infeasible", `, "infeasible": "too large"`, func(s Summary) bool {
			return s.Infeasible != nil && strings.Contains(*s.Infeasible, "too large")
		}},
		{"failed", `, "failed": "no data"`, func(s Summary) bool { return s.Error != nil && strings.Contains(*s.Error, "no data") }},
		{"retry", `, "retry": "spot", "checkpoint": "c"`, func(s Summary) bool { return s.Retry != nil && s.Checkpoint == "c" }},
		{"not ended", "", func(s Summary) bool { return s.Value != nil && *s.Value == 4 && s.Retry == nil && s.Error == nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, nil)
			r.awaitHTTP()
			code, body := r.post("/v1/next", "{}")
			var trial struct {
				ID, Traceparent string
				Parameters      map[string]float64
			}
			if err := json.Unmarshal([]byte(body), &trial); err != nil || code != http.StatusOK || trial.Parameters["x"] != 2 ||
				trial.Traceparent != "00-1-2-01" {
				t.Fatalf("next answers %d %s (%v)", code, body, err)
			}
			if code, body = r.post("/v1/report", fmt.Sprintf(`{"id": %q, "step": 1, "metrics": {"error": 4}}`, trial.ID)); code != http.StatusOK {
				t.Errorf("report answers %d %s", code, body)
			}
			if tt.end != "" {
				if code, body = r.post("/v1/complete", fmt.Sprintf(`{"id": %q%s}`, trial.ID, tt.end)); code != http.StatusOK {
					t.Errorf("complete answers %d %s", code, body)
				}
				if code, body = r.post("/v1/next", "{}"); code != http.StatusGone {
					t.Errorf("a second next answers %d %s, want %d", code, body, http.StatusGone)
				}
			}
			if s := r.end(); !tt.want(s) {
				t.Errorf("the summary is %+v", s)
			}
		})
	}
}

func TestSummaryFits(t *testing.T) {
	s := Summary{Value: new(messaging.Number(math.NaN())), Metrics: map[string]messaging.Number{}, Checkpoint: strings.Repeat("c", 5000),
		Infeasible: new(strings.Repeat("\x01", 4000))}
	for i := range 128 {
		s.Metrics[fmt.Sprintf("%0128d", i)] = messaging.Number(i)
	}
	data := s.Encode(MaxMessage)
	if len(data) > MaxMessage {
		t.Fatalf("it has %d bytes, at most %d fit", len(data), MaxMessage)
	}
	if got, ok := Parse(string(data)); !ok || got.Value == nil || !math.IsNaN(float64(*got.Value)) || got.Infeasible == nil {
		t.Errorf("%s is read as %+v", data, got)
	}
	if len(*s.Infeasible) != 4000 || len(s.Metrics) != 128 {
		t.Error("the summary itself was cut")
	}
}

// FuzzReports checks that reports written to the log are read back unchanged.
func FuzzReports(f *testing.F) {
	f.Add(`{"fantasia": {"step": 1, "metrics": {"error": NaN, "loss": 1e999}, "checkpoint": "x"}}`)
	f.Add(`{"fantasia": {"infeasible": true}} {"fantasia": {"retry": "a\u0000"}}`)
	f.Fuzz(func(t *testing.T, line string) {
		reports, err := report.Parse([]byte(line))
		if err != nil {
			return
		}
		for _, r := range reports {
			r.Trial, r.Attempt, r.Done = nil, nil, false // of stream mode
			data, err := encode(r)
			if err != nil {
				t.Fatal(err)
			}
			back, err := report.Parse(data)
			if err != nil || len(back) != 1 {
				t.Fatalf("%s is read as %v (%v)", data, back, err)
			}
			if diff := cmp.Diff(r, back[0], cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })); diff != "" {
				t.Errorf("%s is read as another report:\n%s", data, diff)
			}
		}
	})
}

// awaitHTTP waits until the sidecar listens.
func (r *rig) awaitHTTP() {
	r.t.Helper()
	for r.t.Context().Err() == nil {
		if conn, err := net.Dial("unix", r.address); err == nil {
			if err := conn.Close(); err != nil {
				r.t.Fatal(err)
			}
			return
		}
		runtime.Gosched()
	}
}

func dialer(socket string) func(ctx context.Context, _, _ string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
}
