package report

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/study"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       []Report
		problem    string // a part of the error; empty for none
	}{
		{"log", `epoch 3, loss 0.3`, nil, ""},
		{"the word alone", `using "fantasia" today`, nil, ""},
		{"another object", `{"level": "info", "fantasia": {"step": 1}}`, nil, ""},
		{"a report", `{"fantasia": {"step": 3, "metrics": {"error": 0.31}}}`,
			[]Report{{Step: new(int64(3)), Metrics: map[string]float64{"error": 0.31}}}, ""},
		{"anywhere in a line", "\x1b[32m[rank 0]\t { \"fantasia\" : {\"metrics\": {\"error\": 1e-3}} } done",
			[]Report{{Metrics: map[string]float64{"error": 1e-3}}}, ""},
		{"two in a line", `{"fantasia":{"step":1}}{"fantasia":{"step":2}}`,
			[]Report{{Step: new(int64(1))}, {Step: new(int64(2))}}, ""},
		{"Python's non-finite numbers", `{"fantasia": {"metrics": {"a": NaN, "b": Infinity, "c": -Infinity}}}`,
			[]Report{{Metrics: map[string]float64{"a": math.NaN(), "b": math.Inf(1), "c": math.Inf(-1)}}}, ""},
		{"JavaScript's NaN", `{"fantasia": {"metrics": {"a": null}}}`, []Report{{Metrics: map[string]float64{"a": math.NaN()}}}, ""},
		{"too large for a float64", `{"fantasia": {"metrics": {"a": 1e999}}}`, []Report{{Metrics: map[string]float64{"a": math.Inf(1)}}}, ""},
		{"a number in a string", `{"fantasia": {"metrics": {"a": "nan", "b": "0.5"}}}`,
			[]Report{{Metrics: map[string]float64{"a": math.NaN(), "b": 0.5}}}, ""},
		{"NaN in a text", `{"fantasia": {"infeasible": "loss is NaN}"}}`, []Report{{Infeasible: new("loss is NaN}")}}, ""},
		{"a whole number as a float", `{"fantasia": {"step": 3.0}}`, []Report{{Step: new(int64(3))}}, ""},
		{"ends", `{"fantasia": {"trial": 7, "attempt": 2, "done": true, "retry": "preempted", "error": "why", "checkpoint": "s3://b/7"}}`,
			[]Report{{Trial: new(7), Attempt: new(2), Done: true, Retry: new("preempted"), Error: new("why"), Checkpoint: "s3://b/7"}}, ""},
		{"reads stop lines", `{"fantasia": {"stoppable": true}}`, []Report{{Stoppable: true}}, ""},
		{"a reason that is none", `{"fantasia": {"infeasible": true, "retry": false, "error": null}}`, []Report{{Infeasible: new("")}}, ""},
		{"half a report", `{"fantasia": {"metrics": {"error": 0.3`, nil, "closing brace"},
		{"half a report before a whole one", `{"fantasia": {"met {"fantasia": {"step": 1}}`, []Report{{Step: new(int64(1))}}, "closing brace"},
		{"no object", `{"fantasia": 3}`, nil, "invalid report"},
		{"null", `{"fantasia": null}`, nil, "null"},
		{"brackets that do not match", `{"fantasia": {"metrics": [}]}`, nil, "invalid report"},
		{"a bad metric beside a good one", `{"fantasia": {"metrics": {"a": 1, "b": "high"}}}`,
			[]Report{{Metrics: map[string]float64{"a": 1}}}, `metric "b" is "high", not a number`},
		{"a bad step", `{"fantasia": {"step": 1.5, "checkpoint": "c"}}`, []Report{{Checkpoint: "c"}}, "step is 1.5, not a whole number"},
		{"a bad flag", `{"fantasia": {"done": "yes"}}`, []Report{{}}, `done is "yes", not true or false`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.line))
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("error %v, want %q", err, tt.problem)
			}
		})
	}
}

func FuzzReportLine(f *testing.F) {
	f.Add(`{"fantasia": {"step": 3, "metrics": {"error": 0.31}}}`)
	f.Add(`{"fantasia": {"metrics": {"e": NaN}, "done": true}} {"fantasia": {`)
	f.Add(`{"fantasia": {"stoppable": true, "trial": 7}}`)
	f.Add(`x{"fantasia":{"infeasible":"\"}"}}`)
	f.Fuzz(func(t *testing.T, line string) {
		reports, _ := Parse([]byte(line))
		if len(reports) > maxReports {
			t.Errorf("%d reports", len(reports))
		}
		for _, r := range reports {
			for _, text := range []*string{r.Infeasible, r.Retry, r.Error, &r.Checkpoint} {
				if text != nil && len(*text) > MaxText {
					t.Errorf("a text of %d bytes", len(*text))
				}
			}
		}
		// Whatever log comes before a report, the report is found.
		if strings.Contains(line, `"fantasia"`) {
			return
		}
		got, err := Parse([]byte(line + `{"fantasia": {"metrics": {"error": 0.5}}}`))
		if len(got) != 1 || err != nil || got[0].Metrics["error"] != 0.5 {
			t.Errorf("after %q: %v, %v", line, got, err)
		}
	})
}

func TestParseTakesBoundedTime(t *testing.T) {
	// Each marker begins an object that never ends: naive parsing is quadratic.
	line := []byte(strings.Repeat(`{"fantasia":`, 80_000))
	if reports, err := Parse(line); len(reports) != 0 || err == nil {
		t.Errorf("%d reports, %v", len(reports), err)
	}
}

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		name, expr, line string
		want             []Report
		problem          bool
	}{
		{"a match", `val_err=(?P<error>\S+)`, `epoch 3: val_err=0.25 lr=0.1`, []Report{{Metrics: map[string]float64{"error": 0.25}}}, false},
		{"none", `val_err=(?P<error>\S+)`, `epoch 3`, nil, false},
		{"punctuation", `val_err=(?P<error>\S+)`, `(val_err=2.5e-1), next`, []Report{{Metrics: map[string]float64{"error": 0.25}}}, false},
		{"not finite", `val_err=(?P<error>\S+)`, `val_err=nan`, []Report{{Metrics: map[string]float64{"error": math.NaN()}}}, false},
		{"two groups", `loss (?P<loss>\S+) acc (?P<acc>\S+)`, `loss 2 acc 0.5`, []Report{{Metrics: map[string]float64{"loss": 2, "acc": 0.5}}}, false},
		{"a branch not taken", `loss (?P<loss>\S+)|acc (?P<acc>\S+)`, `acc 0.5`, []Report{{Metrics: map[string]float64{"acc": 0.5}}}, false},
		{"two matches", `e=(?P<e>\S+)`, `e=1 e=2`, []Report{{Metrics: map[string]float64{"e": 1}}, {Metrics: map[string]float64{"e": 2}}}, false},
		{"no number", `val_err=(?P<error>\S+)`, `val_err=low`, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := NewPattern(tt.expr)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Find([]byte(tt.line))
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != tt.problem {
				t.Errorf("error %v, want one: %v", err, tt.problem)
			}
		})
	}
	for _, bad := range []string{`(`, `error=(\S+)`} {
		if _, err := NewPattern(bad); err == nil {
			t.Errorf("NewPattern(%q) has no error", bad)
		}
	}
}

func TestParseFile(t *testing.T) {
	got, err := ParseFile([]byte("\n {\"error\": 0.25, \"loss\": NaN, \"name\": \"run 1\", \"nested\": {\"a\": 1}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{"error": 0.25, "loss": math.NaN()}, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "[1]", `{"error": 0.2`, "error: 0.2"} {
		if _, err := ParseFile([]byte(bad)); err == nil {
			t.Errorf("ParseFile(%q) has no error", bad)
		}
	}
}

// add reports values of "e" for the steps 0, 1, ….
func add(c *Collector, values ...float64) {
	for _, v := range values {
		c.Add(Report{Metrics: map[string]float64{"e": v}})
	}
}

func TestValueIsTheLastOrTheBest(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tt := range []struct {
		name      string
		take      study.Take
		direction study.Direction
		values    []float64
		want      float64
	}{
		{"last", study.TakeLast, study.Minimize, []float64{3, 1, 2}, 2},
		{"the default is last", "", study.Minimize, []float64{3, 1, 2}, 2},
		{"best of minimise", study.TakeBest, study.Minimize, []float64{3, 1, 2}, 1},
		{"best of maximise", study.TakeBest, study.Maximize, []float64{2, 3, 1}, 3},
		{"last diverged", study.TakeLast, study.Minimize, []float64{1, nan}, nan},
		{"recovered", study.TakeLast, study.Minimize, []float64{nan, 1}, 1},
		{"best before it diverged", study.TakeBest, study.Minimize, []float64{1, nan, inf}, 1},
		{"best after NaN", study.TakeBest, study.Minimize, []float64{nan, 1}, 1},
		{"diverged towards the goal", study.TakeBest, study.Minimize, []float64{1, -inf}, -inf},
		{"only NaN", study.TakeBest, study.Maximize, []float64{nan}, nan},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCollector(study.Objective{Metric: "e", Direction: tt.direction, Take: tt.take})
			if _, ok := c.Value(); ok {
				t.Error("a value before any report")
			}
			add(c, tt.values...)
			got, ok := c.Value()
			if !ok || got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
				t.Errorf("Value() = %v, %v; want %v", got, ok, tt.want)
			}
		})
	}
}

func TestCollectorTakesAValueOncePerStep(t *testing.T) {
	c := NewCollector(study.Objective{Metric: "e"})
	first := c.Add(Report{Step: new(int64(5)), Metrics: map[string]float64{"e": 1, "f": math.NaN()}})
	if diff := cmp.Diff(Taken{Step: 5, Metrics: map[string]float64{"e": 1}}, first); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	second := c.Add(Report{Step: new(int64(5)), Metrics: map[string]float64{"e": 2, "g": 3}})
	if len(second.Ignored) != 1 || len(second.Metrics) != 1 || second.Metrics["g"] != 3 {
		t.Errorf("second: %+v", second)
	}
	if earlier := c.Add(Report{Step: new(int64(2)), Metrics: map[string]float64{"e": 4}}); len(earlier.Ignored) != 0 {
		t.Errorf("an earlier step that is new: %+v", earlier)
	}
	if next := c.Add(Report{Metrics: map[string]float64{"e": 7}}); next.Step != 6 {
		t.Errorf("a report without a step got %d, want one more than the highest", next.Step)
	}
	if diff := cmp.Diff(map[string]float64{"e": 7, "g": 3}, c.Final()); diff != "" {
		t.Errorf("Final (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"e", "f", "g"}, c.Names()); diff != "" {
		t.Errorf("Names (-want +got):\n%s", diff)
	}
}

func TestCollectorIsBounded(t *testing.T) {
	c := NewCollector(study.Objective{Metric: "e"})
	for range 2 * maxSteps {
		add(c, 1)
	}
	if n := len(c.series["e"].steps); n > maxSteps {
		t.Errorf("remembers %d steps", n)
	}
	if again := c.Add(Report{Step: new(int64(2*maxSteps - 1)), Metrics: map[string]float64{"e": 2}}); len(again.Ignored) != 1 {
		t.Error("a second value for a step that is not remembered was taken")
	}
	for i := range 2 * maxMetrics {
		c.Add(Report{Metrics: map[string]float64{"e": 1, strings.Repeat("m", i%8) + string(rune('a'+i/8)): 1}})
	}
	if n := len(c.series); n != maxMetrics {
		t.Errorf("keeps %d metrics, want %d", n, maxMetrics)
	}
	if taken := c.Add(Report{Metrics: map[string]float64{strings.Repeat("m", MaxName+1): 1}}); len(taken.Ignored) != 1 {
		t.Error("a metric with a long name was taken")
	}
}
