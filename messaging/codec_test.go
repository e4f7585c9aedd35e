package messaging_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

var (
	id    = messaging.AttemptID{Study: "01J", Trial: 7, Attempt: 2, Nonce: "n-1"}
	clock = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
)

func ptr[T any](v T) *T { return &v }

func assignment() *messaging.Assignment {
	return &messaging.Assignment{
		Version: messaging.SchemaVersion, AttemptID: id, Pool: "gpu", StudyName: "digits", Seed: math.MaxUint64,
		Parameters: study.Point{
			"whole": 3.0, "tiny": 5e-324, "huge": 1e300, "negative": -0.25, "zero": 0.0,
			"int": int64(3), "least": int64(math.MinInt64), "text": "3", "flag": false,
		},
		ParameterOrder: []string{"whole", "tiny", "huge", "negative", "zero", "int", "least", "text", "flag"},
		Objective:      study.Objective{Metric: "error", Direction: study.Minimize, Take: study.TakeBest, Goal: ptr(0.0)},
		Run: study.TrialTemplate{
			Command: []string{"python", "train.py", "--lr=${lr}"}, Mode: study.ModeStream,
			Env: map[string]string{"DATA": "/data"}, Timeout: study.Duration(90 * time.Second),
			Metrics: &study.Metrics{Pattern: `(?P<error>\S+)`}, Retries: study.Retries{Lost: ptr(0)},
		},
		Checkpoint: "s3://bucket/<x>&y",
	}
}

func claim() *messaging.Claim {
	return &messaging.Claim{Version: 1, AttemptID: id, Pool: "gpu", Worker: "w-1", Slot: 3, At: clock,
		Site: &messaging.Site{Job: "4711_2", Node: "n17"}}
}

func result() *messaging.Result {
	return &messaging.Result{Version: 1, AttemptID: id, Worker: "w-1", Outcome: messaging.OutcomeCompleted,
		Values: []float64{0.1}, Metrics: map[string]float64{"error": 0.1, "steps": 3}, Logs: "/logs",
		Site:    &messaging.Site{Job: "4711_2", Node: "n17", Devices: "0,1"},
		Failure: &messaging.Failure{Reason: "x", ExitCode: ptr(0)}, Started: clock, Ended: clock.Add(time.Second)}
}

func measurement() *messaging.Measurement {
	return &messaging.Measurement{Version: 1, AttemptID: id, Worker: "w-1", Step: 3,
		Metrics: map[string]float64{"error": -1e-9}, Diverged: []string{"loss"}, At: clock}
}

func heartbeat() *messaging.Heartbeat {
	return &messaging.Heartbeat{Version: 1, Worker: "w-1", Pool: "gpu", Instance: "i", Slots: 2, Free: 1,
		Running: []messaging.AttemptID{id}, Spooled: []messaging.AttemptID{id},
		Waiting: []messaging.Waiting{{Cause: "no node", Running: []int{0}}}, Begun: []int{0}, Leaving: true, At: clock, StudyCommands: true,
		Runs: messaging.RunsCommand}
}

func control() *messaging.Control {
	return &messaging.Control{Version: 1, Kind: messaging.ControlCancel, Worker: "w-1", AttemptID: id, Reason: "enough"}
}

func envelopes() map[string]messaging.Envelope {
	return map[string]messaging.Envelope{
		"assignment": assignment(), "claim": claim(), "result": result(),
		"measurement": measurement(), "heartbeat": heartbeat(), "control": control(),
	}
}

func zeroes() map[string]messaging.Envelope {
	return map[string]messaging.Envelope{
		"assignment": &messaging.Assignment{}, "claim": &messaging.Claim{}, "result": &messaging.Result{},
		"measurement": &messaging.Measurement{}, "heartbeat": &messaging.Heartbeat{}, "control": &messaging.Control{},
	}
}

func TestRoundTrip(t *testing.T) {
	for name, sent := range envelopes() {
		data, err := messaging.Encode(sent)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := zeroes()[name]
		if err := messaging.DecodeFrom(sent.Subject("0"), data, got); err != nil {
			t.Errorf("%s: %v\n%s", name, err, data)
			continue
		}
		if diff := cmp.Diff(sent, got); diff != "" {
			t.Errorf("%s (-sent +got):\n%s\n%s", name, diff, data)
		}
		if err := messaging.DecodeFrom("fantasia.claim.0.gpu.01J.8.2", data, zeroes()[name]); err == nil {
			t.Errorf("%s was accepted on another's subject", name)
		}
	}
}

// A worker in another language may write numbers without a point, other time zones, and
// fields of a newer version.
func TestDecodeForeign(t *testing.T) {
	data := `{"version":1,"study":"01J","trial":7,"attempt":2,"nonce":"n-1","worker":"w-1","outcome":"completed",
		"values":[3],"metrics":{"error":3},"started":"2026-01-02T04:04:05.5+01:00","added later":{"x":[1]}}`
	var got messaging.Result
	if err := messaging.Decode([]byte(data), &got); err != nil {
		t.Fatal(err)
	}
	want := messaging.Result{Version: 1, AttemptID: id, Worker: "w-1", Outcome: messaging.OutcomeCompleted,
		Values: []float64{3}, Metrics: map[string]float64{"error": 3},
		Started: time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	const head = `"study":"s","trial":1,"attempt":1,"nonce":"n","worker":"w"`
	tests := []struct {
		name, data string
		into       messaging.Envelope
		err        error
	}{
		{"nothing", ``, &messaging.Result{}, messaging.ErrInvalid},
		{"garbage", "\x00\xff{", &messaging.Control{}, messaging.ErrInvalid},
		{"two values", `{}{}`, &messaging.Heartbeat{}, messaging.ErrInvalid},
		{"no version", `{` + head + `,"outcome":"failed"}`, &messaging.Result{}, messaging.ErrVersion},
		{"newer version", `{"version":2,` + head + `,"outcome":"failed"}`, &messaging.Result{}, messaging.ErrVersion},
		{"newer version of another shape", `{"version":2,"trial":"seven"}`, &messaging.Result{}, messaging.ErrVersion},
		{"text for a number", `{"version":1,"trial":"seven"}`, &messaging.Result{}, messaging.ErrInvalid},
		{"completed without a value", `{"version":1,` + head + `,"outcome":"completed","values":null}`, &messaging.Result{},
			messaging.ErrInvalid},
		{"failed with a value", `{"version":1,` + head + `,"outcome":"failed","values":[1]}`, &messaging.Result{}, messaging.ErrInvalid},
		{"unknown outcome", `{"version":1,` + head + `,"outcome":"maybe"}`, &messaging.Result{}, messaging.ErrInvalid},
		{"infinite value", `{"version":1,` + head + `,"outcome":"completed","values":[1e999]}`, &messaging.Result{}, messaging.ErrInvalid},
		{"NaN", `{"version":1,` + head + `,"outcome":"completed","values":[NaN]}`, &messaging.Result{}, messaging.ErrInvalid},
		{"null metric", `{"version":1,` + head + `,"metrics":{"loss":null}}`, &messaging.Measurement{}, messaging.ErrInvalid},
		{"diverged metric without a name", `{"version":1,` + head + `,"metrics":{"loss":1},"diverged":[""]}`, &messaging.Measurement{},
			messaging.ErrInvalid},
		{"metric without a name", `{"version":1,` + head + `,"metrics":{"":1}}`, &messaging.Measurement{}, messaging.ErrInvalid},
		{"null parameter", `{"version":1,` + head + `,"pool":"p","studyName":"s","objective":{"metric":"m"},` +
			`"parameters":{"a":null},"parameterOrder":["a"]}`, &messaging.Assignment{}, messaging.ErrInvalid},
		{"too long", `"` + strings.Repeat("x", messaging.MaxEnvelope) + `"`, &messaging.Claim{}, messaging.ErrTooLarge},
	}
	for _, test := range tests {
		if err := messaging.Decode([]byte(test.data), test.into); !errors.Is(err, test.err) {
			t.Errorf("%s: error is %v, want %v", test.name, err, test.err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	tests := map[string]messaging.Envelope{
		"study with a dot":      edit(claim(), func(c *messaging.Claim) { c.Study = "a.b" }),
		"study wildcard":        edit(claim(), func(c *messaging.Claim) { c.Study = "*" }),
		"empty nonce":           edit(claim(), func(c *messaging.Claim) { c.Nonce = "" }),
		"long worker":           edit(claim(), func(c *messaging.Claim) { c.Worker = strings.Repeat("w", 129) }),
		"pool with a space":     edit(claim(), func(c *messaging.Claim) { c.Pool = "a b" }),
		"trial 0":               edit(claim(), func(c *messaging.Claim) { c.Trial = 0 }),
		"negative attempt":      edit(claim(), func(c *messaging.Claim) { c.Attempt = -1 }),
		"negative slot":         edit(claim(), func(c *messaging.Claim) { c.Slot = -1 }),
		"time past year 9999":   edit(claim(), func(c *messaging.Claim) { c.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }),
		"result of the leader":  edit(result(), func(r *messaging.Result) { r.Worker = messaging.LeaderName }),
		"NaN value":             edit(result(), func(r *messaging.Result) { r.Values = []float64{math.NaN()} }),
		"infinite metric":       edit(result(), func(r *messaging.Result) { r.Metrics = map[string]float64{"a": math.Inf(-1)} }),
		"NaN parameter":         edit(assignment(), func(a *messaging.Assignment) { a.Parameters = study.Point{"a": math.NaN()} }),
		"parameter of Go's int": edit(assignment(), func(a *messaging.Assignment) { a.Parameters = study.Point{"a": 3} }),
		"order misses one":      edit(assignment(), func(a *messaging.Assignment) { a.ParameterOrder = a.ParameterOrder[1:] }),
		"order repeats one":     edit(assignment(), func(a *messaging.Assignment) { a.ParameterOrder[1] = a.ParameterOrder[0] }),
		"long checkpoint":       edit(result(), func(r *messaging.Result) { r.Checkpoint = strings.Repeat("c", messaging.MaxReference+1) }),
		"long logs":             edit(result(), func(r *messaging.Result) { r.Logs = strings.Repeat("l", messaging.MaxReference+1) }),
		"long job": edit(claim(), func(c *messaging.Claim) {
			c.Site = &messaging.Site{Job: strings.Repeat("j", messaging.MaxSite+1)}
		}),
		"long devices": edit(result(), func(r *messaging.Result) {
			r.Site = &messaging.Site{Devices: strings.Repeat("0", messaging.MaxSite+1)}
		}),
		"long reason":           edit(result(), func(r *messaging.Result) { r.Failure.Reason = strings.Repeat("r", messaging.MaxReason+1) }),
		"long signal":           edit(result(), func(r *messaging.Result) { r.Failure.Signal = strings.Repeat("s", messaging.MaxReason+1) }),
		"long name of a metric": edit(result(), func(r *messaging.Result) { r.Metrics = named(1, messaging.MaxMetricName+1) }),
		"many metrics":          edit(measurement(), func(m *messaging.Measurement) { m.Metrics = named(messaging.MaxMetrics+1, 8) }),
		"long names of metrics": edit(measurement(), func(m *messaging.Measurement) { m.Metrics = named(messaging.MaxMetrics, 128) }),
		"long host":             edit(heartbeat(), func(h *messaging.Heartbeat) { h.Host = strings.Repeat("h", messaging.MaxReference+1) }),
		"too many causes":       edit(heartbeat(), func(h *messaging.Heartbeat) { h.Waiting = make([]messaging.Waiting, messaging.MaxCauses+1) }),
		"long cause":            edit(heartbeat(), func(h *messaging.Heartbeat) { h.Waiting[0].Cause = strings.Repeat("c", messaging.MaxCause) }),
		"begun without running": edit(heartbeat(), func(h *messaging.Heartbeat) { h.Begun = []int{-1} }),
		"waits without running": edit(heartbeat(), func(h *messaging.Heartbeat) { h.Waiting[0].Running = []int{1} }),
		"runs with a space":     edit(heartbeat(), func(h *messaging.Heartbeat) { h.Runs = "a b" }),
		"no metric":             edit(assignment(), func(a *messaging.Assignment) { a.Objective.Metric = "" }),
		"NaN goal":              edit(assignment(), func(a *messaging.Assignment) { a.Objective.Goal = ptr(math.NaN()) }),
		"no slots":              edit(heartbeat(), func(h *messaging.Heartbeat) { h.Slots, h.Free = 0, 0 }),
		"more free than slots":  edit(heartbeat(), func(h *messaging.Heartbeat) { h.Free = 3 }),
		"running without study": edit(heartbeat(), func(h *messaging.Heartbeat) { h.Running = []messaging.AttemptID{{}} }),
		"unknown control":       edit(control(), func(c *messaging.Control) { c.Kind = "reboot" }),
		"cancel without nonce":  edit(control(), func(c *messaging.Control) { c.Nonce = "" }),
	}
	for name, e := range tests {
		if data, err := messaging.Encode(e); !errors.Is(err, messaging.ErrInvalid) {
			t.Errorf("%s: error is %v, want ErrInvalid; encoded %.200s", name, err, data)
		}
	}
	long := heartbeat()
	long.Spooled = slices.Repeat(long.Spooled, messaging.MaxEnvelope/len(`{"study":"01J","trial":7,"attempt":2,"nonce":"n-1"}`))
	if _, err := messaging.Encode(long); !errors.Is(err, messaging.ErrTooLarge) {
		t.Errorf("too long: error is %v, want ErrTooLarge", err)
	}
}

// named returns n metrics with names of the given number of bytes.
func named(n, bytes int) map[string]float64 {
	metrics := make(map[string]float64, n)
	for i := range n {
		metrics[fmt.Sprintf("%0*d", bytes, i)] = 1
	}
	return metrics
}

// Values at their bounds are sent and read.
func TestBoundsAreIncluded(t *testing.T) {
	r := result()
	r.Outcome, r.Values = messaging.OutcomeFailed, nil
	r.Checkpoint, r.Logs = strings.Repeat("c", messaging.MaxReference), strings.Repeat("l", messaging.MaxReference)
	r.Metrics = named(messaging.MaxMetricNames/messaging.MaxMetricName, messaging.MaxMetricName)
	r.Failure = &messaging.Failure{
		Reason: strings.Repeat("r", messaging.MaxReason), Signal: strings.Repeat("s", messaging.MaxReason),
		Message: strings.Repeat("m", messaging.MaxMessage),
	}
	data, err := messaging.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := messaging.Decode(data, &messaging.Result{}); err != nil {
		t.Fatal(err)
	}
}

func edit[T any](v *T, f func(*T)) *T {
	f(v)
	return v
}

// A control needs only what its kind uses.
func TestControlKinds(t *testing.T) {
	for _, c := range []*messaging.Control{
		{Kind: messaging.ControlReceipt, Worker: "w", AttemptID: messaging.AttemptID{Study: "s", Trial: 1, Attempt: 1}},
		{Kind: messaging.ControlAvoid, Worker: "w", AttemptID: messaging.AttemptID{Study: "s"}},
	} {
		if _, err := messaging.Encode(c); err != nil {
			t.Errorf("%s: %v", c.Kind, err)
		}
	}
}

// A message that is too long is truncated between characters, in a copy.
func TestMessageIsCut(t *testing.T) {
	long := "x" + strings.Repeat("é", messaging.MaxMessage)
	r := result()
	r.Outcome, r.Values, r.Failure = messaging.OutcomeFailed, nil, &messaging.Failure{Reason: "exit", Message: long}
	data, err := messaging.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if r.Failure.Message != long || r.Version != 1 {
		t.Error("Encode changed its argument")
	}
	var got messaging.Result
	if err := messaging.Decode(data, &got); err != nil {
		t.Fatal(err)
	}
	// 1 + 2·2047 = 4095 bytes: one more character would be 4097.
	if m := got.Failure.Message; len(m) != messaging.MaxMessage-1 || !strings.HasPrefix(long, m) {
		t.Errorf("the message has %d bytes, want the first %d", len(m), messaging.MaxMessage-1)
	}
}

func TestTraceContext(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" // the example of the specification
	tests := []struct{ in, want messaging.TraceContext }{
		{messaging.TraceContext{Traceparent: parent, Tracestate: "a=1"}, messaging.TraceContext{Traceparent: parent, Tracestate: "a=1"}},
		{messaging.TraceContext{Tracestate: "a=1"}, messaging.TraceContext{}},
		{messaging.TraceContext{Traceparent: parent, Tracestate: "a=1\r\nX: y"}, messaging.TraceContext{Traceparent: parent}},
		{messaging.TraceContext{Traceparent: parent, Tracestate: strings.Repeat("a", 513)}, messaging.TraceContext{Traceparent: parent}},
		{messaging.TraceContext{Traceparent: strings.ToUpper(parent)}, messaging.TraceContext{}},
		{messaging.TraceContext{Traceparent: "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, messaging.TraceContext{}},
		{messaging.TraceContext{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"}, messaging.TraceContext{}},
		{messaging.TraceContext{Traceparent: parent[:54]}, messaging.TraceContext{}},
	}
	for _, test := range tests {
		if got := test.in.Sane(); got != test.want {
			t.Errorf("%+v: got %+v, want %+v", test.in, got, test.want)
		}
	}
}
