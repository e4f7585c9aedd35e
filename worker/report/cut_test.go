package report

import (
	"strconv"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// A pattern that reads a part of a number makes the trial fail with the whole number, and with the
// pattern that reads it if it can be read in one way. What is not a number as a whole is none of it.
func TestANumberIsNotCut(t *testing.T) {
	const guessed = `\brps:\s+(?P<rps>` + valueGroup + ")"
	for _, tt := range []struct {
		pattern, line string
		want          float64 // what is read; 0 for nothing
		whole         string  // what was cut
		wider         float64 // what the advised pattern reads; 0 for no advice
	}{
		{guessed, "rps: 1,180.3 req/s", 0, "1,180.3", 1180.3},
		{guessed, "rps: 1,180,300 req/s", 0, "1,180,300", 1180300},
		{guessed, "rps: 0,1234", 0, "0,1234", 0.1234},
		{guessed, "rps: 1 234.5 req/s", 0, "1 234.5", 1234.5},
		{guessed, "rps: 1\u202f234,5", 0, "1\u202f234,5", 1234.5},
		{guessed, "rps: 1'234.5", 0, "1'234.5", 1234.5},
		{`rps: (?P<rps>\S+)`, "rps: 1,180.3 req/s", 0, "1,180.3", 1180.3},
		{guessed, "rps: 1,180", 0, "1,180", 0}, // 1180 or 1.18
		{`rps: (?P<rps>\d+)`, "rps: 1'234", 0, "1'234", 1234},
		{`rps: (?P<rps>\d+)`, "rps: 1_234", 0, "1_234", 1234},
		{`rps: (?P<rps>\d+)`, "rps: 0.25", 0, "0.25", 0.25},
		{`rps: (?P<rps>[\d.]+)`, "rps: 1.234,5", 0, "1.234,5", 1234.5},
		{`rps: (?P<rps>[0-9.]+)`, "rps: 1.5e-05", 0, "1.5e-05", 1.5e-05},
		{`(?P<rps>\d+) req/s`, "serves 1,180 req/s", 0, "1,180", 0},
		{`(?P<rps>\d+) req/s`, "serves 1,118,000 req/s", 0, "1,118,000", 1118000},
		{`(?P<rps>[\d.]+)$`, "rps: -0.5", 0, "-0.5", -0.5},
		{`rps: (?P<rps>[^\s)(\]]+?)(?:,|$)`, "rps: 1,180.3", 1, "", 0}, // it says that a comma ends the number
		{`^(?P<rps>[^,]+),(?P<p99>[^,]+)$`, "0.25,0.93", 0.25, "", 0},
		{guessed, "rps: 0.25,0.5", 0.25, "", 0}, // no number has a point before a comma
		{guessed, "rps: 1,2,3", 1, "", 0},
		{guessed, "rps: 0.25, step 3", 0.25, "", 0},
		{guessed, "rps: 0.93   1000", 0.93, "", 0},
		{guessed, "rps: 93.1%", 93.1, "", 0},
		{guessed, "rps: 12 p99: 3", 12, "", 0},
		{`rps: (?P<rps>\d+)`, "rps: 12-15", 12, "", 0},
		{`rps: (?P<rps>` + wide + `)`, "rps: -1.234,5.", -1234.5, "", 0},
		{`rps: (?P<rps>` + wide + `)`, "rps: 1.5e-05", 1.5e-05, "", 0},
	} {
		t.Run(tt.pattern+" "+tt.line, func(t *testing.T) {
			p, err := NewPattern(tt.pattern)
			if err != nil {
				t.Fatal(err)
			}
			c := NewCollector([]study.Objective{{Metric: "rps"}})
			reports, _ := Line{Text: []byte(tt.line), Number: 3}.Read("stdout", p.Find)
			for _, r := range reports {
				c.Add(r)
			}
			_, why := c.Unread()
			if v, missing := c.Values(); tt.want != 0 && (missing != "" || v.First() != tt.want || why != "") || tt.want == 0 && missing == "" {
				t.Errorf("read %v, %s; want %v", v, why, tt.want)
			}
			if tt.whole == "" {
				return
			}
			if !strings.Contains(why, strings.Trim(strconv.Quote(tt.whole), `"`)) || !strings.Contains(why, "line 3 of stdout is") {
				t.Errorf("the message is %s", why)
			}
			_, advised, found := strings.Cut(why, "spec.trial.metrics: {pattern: '")
			if found != (tt.wider != 0) {
				t.Fatalf("the message is %s", why)
			}
			if !found {
				return
			}
			p, err = NewPattern(strings.ReplaceAll(strings.TrimSuffix(advised, "'}"), "''", "'"))
			if err != nil {
				t.Fatal(err)
			}
			if reports, err := p.Find([]byte(tt.line)); err != nil || len(reports) != 1 || reports[0].Metrics["rps"] != tt.wider {
				t.Errorf("the advised pattern %s reads %v, %v; want %v", p.expr, reports, err, tt.wider)
			}
		})
	}
}

// The pattern that init writes reads the whole number that it has seen, and is refused if it would cut it.
func TestTheGuessedPatternReadsTheWholeNumber(t *testing.T) {
	for output, want := range map[string]float64{
		"rps: 1,180.3 req/s": 1180.3, "rps=0,1234": 0.1234, "rps 1 234.5": 1234.5, "rps: 1'234": 1234, "rps: 1,180": 0,
		"rps: 0.25\nrps: 1,180.3": 1180.3, "rps: 0.25,": 0.25,
	} {
		expr, _ := Guess(output, "rps")
		if (expr == "") != (want == 0) {
			t.Errorf("%q: guessed %q, want a pattern for %v", output, expr, want)
		}
		if expr == "" {
			continue
		}
		p, err := NewPattern(expr)
		if err != nil {
			t.Fatal(err)
		}
		last := output[strings.LastIndexByte(output, '\n')+1:]
		if reports, err := p.Find([]byte(last)); err != nil || len(reports) != 1 || reports[0].Metrics["rps"] != want {
			t.Errorf("%q: %s reads %v, %v; want %v", output, expr, reports, err, want)
		}
	}
}
