package asktell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(v float64) *float64 { return &v }

// grid returns a study with a space of 3 × 2 points.
func grid(algorithm string) *study.Study {
	return &study.Study{Spec: study.Spec{
		Objective: study.Objective{Metric: "loss", Direction: study.Minimize},
		Parameters: []study.Parameter{
			{Name: "n", Type: study.Int, Min: at(1), Max: at(3)},
			{Name: "fast", Type: study.Bool},
		},
		Algorithm: study.Algorithm{Name: algorithm, Seed: 7},
		Budget:    study.Budget{MaxTrials: 100},
	}}
}

// reply holds the parts of an answer that the tests check.
type reply struct {
	Suggestions []struct {
		Trial      int            `json:"trial"`
		Parameters map[string]any `json:"parameters"`
		Why        map[string]any `json:"why"`
	} `json:"suggestions"`
	Told        *int            `json:"told"`
	Recommended json.RawMessage `json:"recommended"`
	Error       string          `json:"error"`
}

// converse serves the lines and returns the answers.
func converse(t testing.TB, s *study.Study, lines ...string) []reply {
	t.Helper()
	var out bytes.Buffer
	if err := Serve(t.Context(), s, strings.NewReader(strings.Join(lines, "\n")+"\n"), &out); err != nil {
		t.Fatalf("serve: %v", err)
	}
	return decode(t, out.Bytes())
}

func decode(t testing.TB, out []byte) []reply {
	t.Helper()
	var replies []reply
	for text := range bytes.Lines(out) {
		var r reply
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("the answer %q is no JSON: %v", text, err)
		}
		replies = append(replies, r)
	}
	return replies
}

func TestConversation(t *testing.T) {
	replies := converse(t, grid("random"),
		`{"recommend": true}`,
		`{"ask": 2}`,
		`{"ask": 1}`,
		`{"tell": [{"trial": 3, "metrics": {"loss": 0.5, "other": 1}}, {"trial": 1, "failed": true}]}`,
		`{"tell": [{"trial": 2, "metrics": {"loss": 0.25}}]}`,
		`{"recommend": true}`,
	)
	if len(replies) != 6 {
		t.Fatalf("6 lines, %d answers: %+v", len(replies), replies)
	}
	if got := string(replies[0].Recommended); got != "null" {
		t.Errorf("recommended before anything completed: %s, want null", got)
	}
	var trials []int
	for _, s := range append(replies[1].Suggestions, replies[2].Suggestions...) {
		trials = append(trials, s.Trial)
		if len(s.Parameters) != 2 || s.Why["source"] != "random" {
			t.Errorf("trial %d: parameters %v because of %v", s.Trial, s.Parameters, s.Why)
		}
	}
	if diff := cmp.Diff([]int{1, 2, 3}, trials); diff != "" {
		t.Errorf("trial numbers (-want +got):\n%s", diff)
	}
	if a, b := replies[3].Told, replies[4].Told; a == nil || *a != 2 || b == nil || *b != 1 {
		t.Errorf("told %v and %v, want 2 and 1", a, b)
	}
	if got := string(replies[5].Recommended); got != "null" {
		t.Errorf("recommended without a model: %s, want null", got)
	}
}

func TestRecommend(t *testing.T) {
	replies := converse(t, grid("gp"),
		`{"recommend": true}`,
		`{"ask": 2}`,
		`{"tell": [{"trial": 1, "failed": true}, {"trial": 2, "metrics": {"loss": 0.25}}]}`,
		`{"recommend": true}`,
	)
	if got := string(replies[0].Recommended); got != "null" {
		t.Errorf("recommended before anything completed: %s, want null", got)
	}
	got := map[string]any{}
	if err := json.Unmarshal(replies[3].Recommended, &got); err != nil {
		t.Fatal(err)
	}
	parameters := map[string]any{}
	for name, value := range replies[1].Suggestions[1].Parameters {
		parameters[name] = value
	}
	// One evaluation allows no model: the recommendation is its value.
	want := map[string]any{"trial": 2.0, "mean": 0.25, "sd": 0.0, "parameters": parameters}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recommended (-want +got):\n%s", diff)
	}
}

func TestExhaustedSpaceGivesFewer(t *testing.T) {
	replies := converse(t, grid("sobol"), `{"ask": 4}`, `{"ask": 4}`, `{"ask": 4}`)
	for i, want := range []int{4, 2, 0} {
		if got := len(replies[i].Suggestions); got != want || replies[i].Error != "" {
			t.Errorf("ask %d gave %d points and the error %q, want %d", i+1, got, replies[i].Error, want)
		}
	}
	if out := raw(t, grid("sobol"), `{"ask": 6}`, `{"ask": 1}`); !strings.HasSuffix(out, "{\"suggestions\":[]}\n") {
		t.Errorf("an exhausted space answers %s", out)
	}
}

func raw(t *testing.T, s *study.Study, lines ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := Serve(t.Context(), s, strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestBadLinesChangeNothing(t *testing.T) {
	long := `{"ask": ` + strings.Repeat(" ", MaxLine) + `1}`
	for _, c := range []struct{ line, want string }{
		{`ask`, "not a request"},
		{`[1]`, "not a request"},
		{`{"ask": 1} {}`, "text after the JSON object"},
		{`{"ask": 1, "recommend": true}`, "exactly one of"},
		{`{}`, "exactly one of"},
		{`null`, "exactly one of"},
		{`{"asks": 1}`, `unknown field "asks"`},
		{`{"ask": 0}`, "want 1 to 1000"},
		{`{"ask": 1001}`, "want 1 to 1000"},
		{`{"ask": 1.5}`, "ask: number 1.5 is not accepted; want a whole number such as 8"},
		{`{"recommend": false}`, "must be true"},
		{long, "longer than 1048576 bytes"},
		{`{"tell": [{"trial": 9, "metrics": {"loss": 1}}]}`, "tell[0]: trial 9 was never asked for: the last one is 2"},
		{`{"tell": [{"trial": 0, "failed": true}]}`, "tell[0]: trial 0 was never asked for"},
		{`{"tell": [{"trial": 1, "metrics": {"loss": 1}}, {"trial": 1, "failed": true}]}`, "tell[1]: trial 1 has already been told"},
		{`{"tell": [{"trial": 1, "metrics": {"loss": 1}}, {"trial": 2, "metrics": {"los": 1, "b": 2}}]}`,
			`tell[1]: metric "loss" is missing: got "b", "los"`},
		{`{"tell": [{"trial": 1, "metrics": {}}]}`, `metric "loss" is missing: got none`},
		{`{"tell": [{"trial": 1, "metrics": {"loss": null}}]}`, `"infeasible": true`},
		{`{"tell": [{"trial": 1, "metrics": {"loss": NaN}}]}`, "not a request"},
		{`{"tell": [{"trial": 1, "metrics": {"loss": 1e999}}]}`, "not a request"},
		{`{"tell": [{"trial": 1, "metrics": {"loss": "1"}}]}`, "tell.metrics: string is not accepted; want a number"},
		{`{"tell": [{"trial": 1}]}`, "exactly one of"},
		{`{"tell": [{"trial": 1, "failed": true, "infeasible": true}]}`, "exactly one of"},
		{`{"tell": [{"trial": 1, "failed": true, "metrics": {"loss": 1}}]}`,
			`metric "loss" of an evaluation that has not completed: want exactly one of`},
		{`{"tell": [{"metrics": {"loss": 1}}]}`, `either "trial" or "parameters"`},
		{`{"tell": [{"trial": 1, "parameters": {"n": 1, "fast": true}, "failed": true}]}`, `either "trial" or "parameters"`},
		{`{"tell": [{"parameters": {"n": 4, "fast": true}, "failed": true}]}`, "tell[0]: parameters: "},
		{`{"tell": [{"parameters": {"n": 1}, "failed": true}]}`, "parameter fast is missing"},
		{`{"tell": [{"parameters": {"n": 1, "fast": true, "m": 1}, "failed": true}]}`, `no such parameter`},
	} {
		before, after := `{"ask": 2}`, `{"tell": [{"trial": 1, "metrics": {"loss": 1}}, {"trial": 2, "infeasible": true}]}`
		with := converse(t, grid("random"), before, c.line, after, `{"ask": 4}`)
		without := converse(t, grid("random"), before, after, `{"ask": 4}`)
		if len(with) != 4 {
			t.Errorf("%.60s: %d answers to 4 lines", c.line, len(with))
			continue
		}
		if !strings.Contains(with[1].Error, c.want) {
			t.Errorf("%.60s: the error %q does not say %q", c.line, with[1].Error, c.want)
		}
		if diff := cmp.Diff(without[1:], with[2:]); diff != "" {
			t.Errorf("%.60s: changed what followed:\n%s", c.line, diff)
		}
	}
}

func TestToldPointsCountAsEvaluated(t *testing.T) {
	replies := converse(t, grid("gp"),
		`{"tell": [{"parameters": {"n": 2, "fast": true}, "metrics": {"loss": 3}}, {"parameters": {"n": 3, "fast": false}, "failed": true}]}`,
		`{"ask": 6}`,
		`{"recommend": true}`,
	)
	if replies[0].Told == nil || *replies[0].Told != 2 {
		t.Fatalf("told %+v, want 2", replies[0])
	}
	if len(replies[1].Suggestions) != 4 {
		t.Errorf("2 of 6 points are told, asked for 6 more: %d", len(replies[1].Suggestions))
	}
	for _, s := range replies[1].Suggestions {
		if n, fast := s.Parameters["n"], s.Parameters["fast"]; n == 2.0 && fast == true || n == 3.0 && fast == false {
			t.Errorf("suggested %v, which was told", s.Parameters)
		}
	}
	if got := string(replies[2].Recommended); !strings.Contains(got, `"trial":0`) || !strings.Contains(got, `"n":2`) {
		t.Errorf("recommended %s, want the told point", got)
	}
}

func TestSameLinesSameAnswers(t *testing.T) {
	lines := []string{
		`{"ask": 3}`, `{"tell": [{"trial": 2, "metrics": {"loss": 0.5}}, {"trial": 1, "metrics": {"loss": 0.75}}]}`, `{"ask": 2}`,
		`{"recommend": true}`,
	}
	if a, b := raw(t, grid("gp"), lines...), raw(t, grid("gp"), lines...); a != b {
		t.Errorf("two runs differ:\n%s\n%s", a, b)
	}
}

func TestWindowsLinesAndNoLastNewline(t *testing.T) {
	got := decode(t, []byte(raw(t, grid("random"), "{\"ask\": 1}\r", "", "\r", `{"ask": 1}`)))
	if len(got) != 2 || len(got[0].Suggestions) != 1 || len(got[1].Suggestions) != 1 {
		t.Errorf("got %+v, want two answers", got)
	}
}

func TestUnknownAlgorithmAndSettings(t *testing.T) {
	for _, c := range []struct {
		algorithm study.Algorithm
		want      string
	}{
		{study.Algorithm{Name: "gpp"}, `unknown algorithm "gpp"`},
		{study.Algorithm{Settings: map[string]any{"initial": -1}}, `setting "initial": -1 is not accepted`},
	} {
		s := grid("")
		s.Spec.Algorithm = c.algorithm
		if err := Serve(t.Context(), s, strings.NewReader(""), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.algorithm, err, c.want)
		}
	}
}

func TestContextEndsServe(t *testing.T) {
	in, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	answers, out := io.Pipe()
	go func() { ended <- Serve(ctx, grid("random"), in, out) }()
	if _, err := fmt.Fprintln(writer, `{"ask": 1}`); err != nil {
		t.Fatal(err)
	}
	if _, err := answers.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	cancel() // while the next line is waited for
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Serve returned %v, want %v", err, context.Canceled)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenReaderAndWriter(t *testing.T) {
	broken := errors.New("broken")
	in, writer := io.Pipe()
	if err := writer.CloseWithError(broken); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), grid("random"), in, io.Discard); !errors.Is(err, broken) {
		t.Errorf("a broken reader: %v", err)
	}
	reader, out := io.Pipe()
	if err := reader.CloseWithError(broken); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), grid("random"), strings.NewReader(`{"ask": 1}`), out); !errors.Is(err, broken) {
		t.Errorf("a broken writer: %v", err)
	}
}

// FuzzServe checks that each non-empty line gets one answer, that no input ends Serve
// with an error, and that trial numbers count up from 1.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"ask": 2}` + "\n" + `{"tell": [{"trial": 1, "metrics": {"loss": 0.5}}]}` + "\n" + `{"recommend": true}`))
	f.Add([]byte(`{"tell": [{"parameters": {"n": 1, "fast": true}, "metrics": {"loss": 1e300}}]}` + "\n\n" + `{"ask": 9}`))
	f.Add([]byte("{\"ask\":\r\n null}\x00"))
	f.Add([]byte(`{"tell": [{"trial": 1, "infeasible": true}, null]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := Serve(t.Context(), grid("sobol"), bytes.NewReader(in), &out); err != nil {
			t.Fatalf("serve: %v", err)
		}
		lines := 0
		for text := range bytes.Lines(in) {
			if len(bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))) > 0 {
				lines++
			}
		}
		replies := decode(t, out.Bytes())
		if len(replies) != lines {
			t.Errorf("%d lines, %d answers", lines, len(replies))
		}
		asked := 0
		for _, r := range replies {
			for _, s := range r.Suggestions {
				if asked++; s.Trial != asked {
					t.Errorf("trial %d follows %d others", s.Trial, asked-1)
				}
			}
		}
	})
}

// An evaluation that failed may have what was known of it early.
func TestTellKnownEarly(t *testing.T) {
	spec := &study.Spec{
		Several: []study.Objective{{Metric: "loss"}, {Metric: "size", Early: true}},
		Limits:  []study.Limit{{Metric: "memory", Max: new(4.0)}, {Metric: "size", Max: new(8.0), Early: true}},
	}
	size := 9.0
	o, err := tell{Failed: true, Metrics: map[string]*float64{"size": &size}}.observation(spec)
	if err != nil || o.Outcome != optimizer.OutcomeFailed || len(o.Early) != 2 || o.Early[1] != 9 || len(o.Excess) != 2 || o.Excess[1] != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err = (tell{Infeasible: true, Metrics: map[string]*float64{"size": nil}}).observation(spec); err != nil || o.Early != nil ||
		o.Excess != nil {
		t.Errorf("without a size got %+v, %v", o, err)
	}
}

// What an evaluation has cost is told with its metrics, also if it failed, and how long it took as seconds. With the setting
// cost, suggestions say what they are expected to cost or to take.
func TestTellCost(t *testing.T) {
	spec := &study.Spec{Objective: study.Objective{Metric: "loss"}, Cost: &study.Cost{Metric: "dollars"}}
	spent := map[string]*float64{"dollars": new(2.5)}
	if o, err := (tell{Failed: true, Metrics: spent, Seconds: new(60.0)}).observation(spec); err != nil || o.Cost != 2.5 || o.Seconds != 60 {
		t.Errorf("one that failed: %+v, %v", o, err)
	}
	for name, wrong := range map[string]tell{
		`metric "dollars" is -1`: {Failed: true, Metrics: map[string]*float64{"dollars": new(-1.0)}},
		"seconds -1":             {Failed: true, Seconds: new(-1.0)},
	} {
		if _, err := wrong.observation(spec); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error of %+v is %v, want %q", wrong, err, name)
		}
	}
	tells := `{"tell": [{"parameters": {"x": 0.1}, "metrics": {"loss": 1, "dollars": 4}, "seconds": 7},
		{"parameters": {"x": 0.4}, "metrics": {"loss": 0.7, "dollars": 4}, "seconds": 7},
		{"parameters": {"x": 0.6}, "metrics": {"loss": 0.5, "dollars": 4}, "seconds": 7},
		{"parameters": {"x": 0.9}, "metrics": {"loss": 0.8, "dollars": 4}, "seconds": 7}]}`
	for _, c := range []struct {
		cost *study.Cost
		want string
	}{{&study.Cost{Metric: "dollars"}, "expected to cost 4 dollars"}, {nil, "expected to take 7 s"}} {
		s := grid("gp")
		s.Spec.Parameters, s.Spec.Cost = []study.Parameter{{Name: "x", Type: study.Float, Min: at(0), Max: at(1)}}, c.cost
		s.Spec.Algorithm.Settings = map[string]any{"cost": "per-second", "initial": 3}
		replies := converse(t, s, strings.ReplaceAll(tells, "\n", ""), `{"ask": 1}`)
		if why := replies[1].Suggestions[0].Why["note"]; !strings.HasSuffix(fmt.Sprint(why), c.want) {
			t.Errorf("the reason is %q, want it to end with %q", why, c.want)
		}
	}
}

// A trial that has run for long says that points near it take long. A request that is wrong in one element changes nothing.
func TestAskSaysWhatRuns(t *testing.T) {
	tells := make([]string, 0, 5)
	for i := range cap(tells) {
		tells = append(tells, fmt.Sprintf(`{"parameters": {"x": %g}, "metrics": {"loss": %g}, "seconds": 7}`, float64(i)/4, float64(4-i)))
	}
	takes := func(ask string, wrong ...string) float64 {
		s := grid("gp")
		s.Spec.Parameters = []study.Parameter{{Name: "x", Type: study.Float, Min: at(0), Max: at(1)}}
		s.Spec.Algorithm.Settings = map[string]any{"cost": "per-second", "initial": 3}
		lines := append([]string{`{"tell": [` + strings.Join(tells, ",") + `]}`, `{"ask": 1}`}, wrong...)
		replies := converse(t, s, append(lines, ask)...)
		for i, line := range wrong {
			if replies[2+i].Error == "" {
				t.Errorf("%s is accepted", line)
			}
		}
		var seconds float64
		note := fmt.Sprint(replies[len(replies)-1].Suggestions[0].Why["note"])
		if _, err := fmt.Sscanf(note[strings.LastIndex(note, "take"):], "take %g", &seconds); err != nil {
			t.Fatalf("the reason is %q, want it to say how long it takes: %v", note, err)
		}
		return seconds
	}
	const long = `{"ask": 1, "running": [{"trial": 1, "seconds": 7000}]}`
	silent, waits := takes(`{"ask": 1}`), takes(long)
	if silent > 8 || waits < 3*silent {
		t.Errorf("a suggestion takes %g s beside a trial of which nothing is known, and %g s beside one that has run for 7000", silent, waits)
	}
	if got := takes(`{"ask": 1}`, strings.Replace(long, "7000", "-1", 1), strings.Replace(long, "]", `, {"trial": 2, "seconds": 1}]`, 1),
		strings.Replace(long, "]", `, {"trial": 1, "seconds": 1}]`, 1), strings.Replace(long, `, "seconds": 7000`, "", 1),
		strings.Replace(long, `"ask": 1`, `"recommend": true`, 1), strings.Replace(long, `"ask": 1`, `"ask": 0`, 1)); got != silent {
		t.Errorf("after requests that are refused a suggestion takes %g s, want %g", got, silent)
	}
}
