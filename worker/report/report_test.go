package report

import (
	"math"
	"slices"
	"strconv"
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
		{"half a report", `x {"fantasia": {"metrics": {"error": 0.3`, broke(`{"fantasia": {"metrics": {"error": 0.3`), "closing brace"},
		{"half a report before a whole one", `{"fantasia": {"met {"fantasia": {"step": 1}}`,
			append(broke(`{"fantasia": {"met {"fantasia": {"step": 1}}`), Report{Step: new(int64(1))}), "closing brace"},
		{"no object", `{"fantasia": 3}`, broke(`{"fantasia": 3}`), "invalid report"},
		{"null", `{"fantasia": null}`, broke(`{"fantasia": null}`), "null"},
		{"brackets that do not match", `{"fantasia": {"metrics": [}]}`, broke(`{"fantasia": {"metrics": [}]}`), "invalid report"},
		{"a bad metric beside a good one", `{"fantasia": {"metrics": {"a": 1, "b": "high"}}}`,
			[]Report{{Metrics: map[string]float64{"a": 1}, Unreadable: map[string]string{"b": `"high"`}}}, `metric "b" is "high", not a number`},
		{"bytes that are no text", "{\"fantasia\": {\"metrics\": {\"a\": \"0.25\xff\"}}}",
			[]Report{{Metrics: map[string]float64{}, Unreadable: map[string]string{"a": `"0.25\xff"`}}}, `metric "a" is "0.25\xff", not a number`},
		{"colours", "{\"fantasia\": {\"metrics\": {\"a\": \x1b[1;36m0.25\x1b[0m}}}", []Report{{Metrics: map[string]float64{"a": 0.25}}}, ""},
		{"numbers of C and Fortran", `{"fantasia": {"step": 1, "metrics": {"a": -nan, "b":+inf, "c": -1.#IND, "d": 1.0D-3 , "e": .5}}}`,
			[]Report{{Step: new(int64(1)), Metrics: map[string]float64{"a": math.NaN(), "b": math.Inf(1), "c": math.NaN(), "d": 1e-3, "e": 0.5}}},
			""},
		{"Python's None", `{"fantasia": {"metrics": {"a": None}}}`, broke(`{"fantasia": {"metrics": {"a": None}}}`), "invalid report"},
		{"a metric in the wrong place", `{"fantasia": {"loss": 0.25}}`, []Report{{}},
			`"loss" is a number outside of "metrics": write {"fantasia": {"metrics": {"loss": 0.25}}}`},
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

// broke returns a report that cannot be read.
func broke(text string) []Report { return []Report{{Unreadable: map[string]string{"": text}}} }

func FuzzReportLine(f *testing.F) {
	f.Add(`{"fantasia": {"step": 3, "metrics": {"error": 0.31}}}`)
	f.Add(`{"fantasia": {"metrics": {"e": NaN}, "done": true}} {"fantasia": {`)
	f.Add(`{"fantasia": {"stoppable": true, "trial": 7}}`)
	f.Add(`x{"fantasia":{"infeasible":"\"}"}}`)
	f.Add("\x1b")
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
	if reports, err := Parse(line); len(reports) != maxReports || err == nil {
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
		{"two groups", `loss (?P<loss>\S+) acc (?P<acc>\S+)`, `loss 2 acc 0.5`, []Report{{Metrics: map[string]float64{"loss": 2, "acc": 0.5}}},
			false},
		{"a branch not taken", `loss (?P<loss>\S+)|acc (?P<acc>\S+)`, `acc 0.5`, []Report{{Metrics: map[string]float64{"acc": 0.5}}}, false},
		{"two matches", `e=(?P<e>\S+)`, `e=1 e=2`, []Report{{Metrics: map[string]float64{"e": 1}}, {Metrics: map[string]float64{"e": 2}}}, false},
		{"no number", `val_err=(?P<error>\S+)`, `val_err=low`,
			[]Report{{Metrics: map[string]float64{}, Unreadable: map[string]string{"error": `"low"`}}}, true},
		{"one that is none after one that is", `e=(?P<e>\S+)`, `e=1 e=None`,
			[]Report{{Metrics: map[string]float64{"e": 1}}, {Metrics: map[string]float64{}, Unreadable: map[string]string{"e": `"None"`}}}, true},
		{"bytes that are no text", `e=(?P<e>\S+)`, "e=0.25\xff",
			[]Report{{Metrics: map[string]float64{}, Unreadable: map[string]string{"e": `"0.25\xff"`}}}, true},
		{"colours", `^loss: (?P<loss>\S+) acc`, "\x1b[1mloss:\x1b[0m \x1b[38;5;9m0.25\x1b[K\x1b[m \x1b]8;;http://a\x1b\\acc\x1b]8;;\x07\x1b(B",
			[]Report{{Metrics: map[string]float64{"loss": 0.25}}}, false},
		{"a name that is no group's", `loss=(?P<val_loss>\S+)`, `loss=0.25`, []Report{{Metrics: map[string]float64{"val/loss": 0.25}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := NewPattern(tt.expr, "val/loss")
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
		if _, err := NewPattern(bad, "error"); err == nil {
			t.Errorf("NewPattern(%q) has no error", bad)
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
			c := NewCollector([]study.Objective{{Metric: "e", Direction: tt.direction, Take: tt.take}})
			if _, missing := c.Values(); missing != "e" {
				t.Error("a value before any report")
			}
			add(c, tt.values...)
			values, missing := c.Values()
			if got := values.First(); missing != "" || got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
				t.Errorf("Values() = %v, %q; want %v", values, missing, tt.want)
			}
		})
	}
}

// Values of several objectives are those of one report: the last one or, if one of them takes its
// best, the report in which that one was best.
func TestCollectorChoosesOneReportForAllObjectives(t *testing.T) {
	last := []study.Objective{{Metric: "e", Direction: study.Minimize, Take: study.TakeLast},
		{Metric: "s", Direction: study.Minimize, Take: study.TakeLast}}
	best := []study.Objective{{Metric: "e", Direction: study.Minimize, Take: study.TakeBest},
		{Metric: "s", Direction: study.Minimize, Take: study.TakeLast}}
	at := func(step int64, metrics map[string]float64) Report { return Report{Step: &step, Metrics: metrics} }
	both := func(e, s float64) map[string]float64 { return map[string]float64{"e": e, "s": s} }
	e := func(v float64) map[string]float64 { return map[string]float64{"e": v} }
	s := func(v float64) map[string]float64 { return map[string]float64{"s": v} }
	for _, tt := range []struct {
		name       string
		objectives []study.Objective
		reports    []Report
		want       study.Values
		missing    string
	}{
		{"nothing", last, nil, nil, "e"},
		{"one of them", last, []Report{at(1, e(1))}, nil, "s"},
		{"the last", last, []Report{at(1, both(1, 5)), at(2, both(2, 6))}, study.Values{2, 6}, ""},
		{"two lines", last, []Report{{Metrics: e(1)}, {Metrics: s(5)}}, study.Values{1, 5}, ""},
		{"the best of one", best, []Report{at(1, both(3, 9)), at(2, both(1, 7)), at(3, both(2, 5))}, study.Values{1, 7}, ""},
		{"the best of one in two lines", best, []Report{at(1, e(3)), at(1, s(9)), at(2, s(7)), at(2, e(1)), at(3, e(2)), at(3, s(5))},
			study.Values{1, 7}, ""},
		{"the best of one, the other after it", best, []Report{at(1, e(1)), at(1, s(9)), at(2, s(7))}, study.Values{1, 9}, ""},
		{"a size at once", best, []Report{at(0, s(9)), at(1, e(3)), at(2, e(1)), at(3, e(2))}, study.Values{1, 9}, ""},
		{"a size at the end", best, []Report{at(1, e(1)), at(2, e(2)), at(3, s(9)), at(4, s(8))}, study.Values{1, 9}, ""},
		{"diverged in the best report", best, []Report{at(1, both(3, 9)), at(2, both(1, math.Inf(1)))}, study.Values{1, math.Inf(1)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCollector(tt.objectives)
			for _, r := range tt.reports {
				c.Add(r)
			}
			if got, missing := c.Values(); missing != tt.missing || !slices.Equal(got, tt.want) {
				t.Errorf("Values() = %v, %q; want %v, %q", got, missing, tt.want, tt.missing)
			}
		})
	}
}

func TestCollectorTakesAValueOncePerStep(t *testing.T) {
	c := NewCollector([]study.Objective{{Metric: "e"}})
	first := c.Add(Report{Step: new(int64(5)), Metrics: map[string]float64{"e": 1, "f": math.NaN()}})
	if diff := cmp.Diff(Taken{Step: 5, Metrics: map[string]float64{"e": 1, "f": math.NaN()}}, first, cmpopts.EquateNaNs()); diff != "" {
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
	c := NewCollector([]study.Objective{{Metric: "the objective"}})
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
	c.Add(Report{Metrics: map[string]float64{"the objective": 7}})
	if v, missing := c.Values(); missing != "" || v.First() != 7 {
		t.Errorf("after %d other metrics the objective is %v, %q is missing; want 7", maxMetrics, v, missing)
	}
	if taken := c.Add(Report{Metrics: map[string]float64{strings.Repeat("m", MaxName+1): 1}}); len(taken.Ignored) != 1 {
		t.Error("a metric with a long name was taken")
	}
}

// A value that cannot be read hides the older ones, until one can be read again.
func TestAnUnreadableValueOfTheObjectiveIsNotPassedOver(t *testing.T) {
	pattern, err := NewPattern(`loss=(?P<loss>\S+)|acc=(?P<acc>\S+)`, "loss")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, output, want string }{
		{"readable", "loss=1\nloss=2\n", ""},
		{"a word", "loss=1\r\nepoch 2\rloss=None\n", `"loss" is "None", not a number: line 2 of stdout is "loss=None"`},
		{"Fortran's overflow", "loss=0.01\nloss=***\nacc=1\n", `"loss" is "***", not a number: line 2 of stdout is "loss=***"`},
		{"twice in a line", "loss=1 loss=1,234.5\n", `"loss" is "1,234.5", not a number: line 1 of stdout is "loss=1 loss=1,234.5"`},
		{"only that", "loss=high", `"loss" is "high", not a number: line 1 of stdout is "loss=high"`},
		{"readable again", "loss=1\nloss=None\nloss=2\n", ""},
		{"another metric", "loss=1\nacc=None\n", ""},
		{"in a report", "loss=1\n\n" + `{"fantasia": {"metrics": {"loss": "high"}}}`, `"loss" is "high", not a number: line 3 of stdout is`},
		{"in a broken report", "loss=1\n" + `{"fantasia": {"metrics": {"loss": None}}}`,
			`a report with "loss" cannot be read: line 2 of stdout is`},
		{"in half a report", "loss=1\n" + `{"fantasia": {"metrics": {"loss": 0.`, `a report with "loss" cannot be read: line 2 of stdout is`},
		{"a broken report without it", "loss=1\n" + `{"fantasia": {"metrics": {"acc": None}}}`, ""},
		{"in a long line", "loss=1\n" + `{"fantasia": {"metrics": {"loss": 1, "x": 0.` + strings.Repeat("1", MaxLine),
			`a report with "loss" cannot be read: line 2 of stdout is`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCollector([]study.Objective{{Metric: "loss"}})
			lines := Lines{Emit: func(line Line) {
				for _, find := range []func([]byte) ([]Report, error){Parse, pattern.Find} {
					reports, _ := line.Read("stdout", find)
					for _, r := range reports {
						c.Add(r)
					}
				}
			}}
			lines.Add([]byte(tt.output))
			lines.Flush()
			if _, got := c.Unread(); tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestALineThatIsTooLongSaysTheLimit(t *testing.T) {
	var problem error
	lines := Lines{Emit: func(line Line) { _, problem = line.Read("stdout", Parse) }}
	lines.Add([]byte("a\n" + strings.Repeat("x", MaxLine)))
	if lines.Flush(); problem != nil {
		t.Errorf("a line of the largest length: %v", problem)
	}
	lines.Add([]byte("\n" + strings.Repeat("x", MaxLine+1) + "\n"))
	if problem == nil || problem.Error() != "line 3 of stdout: it is longer than 1048576 bytes, and was not searched for reports" {
		t.Errorf("got %v", problem)
	}
	if lines.Add([]byte("b\n")); problem != nil {
		t.Errorf("the next line: %v", problem)
	}
}

func FuzzPattern(f *testing.F) {
	f.Add(`loss=(?P<loss>\S+)`, "loss=0.25 \x1b[1mloss=-nan(ind)\x1b[m")
	f.Add(`(?P<a>.*),(?P<b>.*)`, "tensor(1.0D-3, 1.#QNAN,\xff")
	f.Fuzz(func(t *testing.T, expr, line string) {
		p, err := NewPattern(expr, "loss")
		if err != nil {
			return
		}
		reports, err := p.Find([]byte(line))
		if len(reports) > maxReports {
			t.Errorf("%d reports", len(reports))
		}
		unreadable := 0
		for _, r := range reports {
			for _, text := range r.Unreadable {
				unreadable++
				if _, err := strconv.Unquote(text); err != nil {
					t.Errorf("%s is not quoted: %v", text, err)
				}
			}
		}
		if (unreadable > 0) != (err != nil) {
			t.Errorf("%d values are unreadable, and the error is %v", unreadable, err)
		}
	})
}
