package report

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// However the reports of a trial are divided among attempts that continue one another, its value, its
// metrics and the numbers of its reports are those of a trial that was never interrupted.
func TestAttemptsThatContinueAreLikeOne(t *testing.T) {
	values := rapid.SampledFrom([]float64{0, 0.1, 0.25, 0.5, 1, math.Inf(1), math.Inf(-1), math.NaN()})
	rapid.Check(t, func(t *rapid.T) {
		take := rapid.SampledFrom([]study.Take{study.TakeLast, study.TakeBest}).Draw(t, "take")
		objectives := []study.Objective{
			{Metric: "loss", Direction: study.Minimize, Take: take}, {Metric: "size", Direction: study.Maximize, Take: study.TakeLast},
		}
		whole, part := NewCollector(objectives, "memory"), NewCollector(objectives, "memory")
		for step := range rapid.IntRange(1, 12).Draw(t, "reports") {
			r := Report{Metrics: map[string]float64{}}
			for _, metric := range []string{"loss", "size", "memory"} {
				if rapid.Bool().Draw(t, metric) {
					r.Metrics[metric] = values.Draw(t, "value")
				}
			}
			if rapid.Bool().Draw(t, "numbered") {
				r.Step = new(int64(step + 100))
			}
			if a, b := whole.Add(r), part.Add(r); a.Step != b.Step && len(r.Metrics) > 0 {
				t.Fatalf("step %d, after an interruption %d", a.Step, b.Step)
			}
			if rapid.Bool().Draw(t, "interrupted") {
				text, err := json.Marshal(part.Reached(1))
				if err != nil {
					t.Fatal(err)
				}
				var sent messaging.Reached
				if err := json.Unmarshal(text, &sent); err != nil {
					t.Fatal(err)
				}
				part = NewCollector(objectives, "memory")
				part.Continue(&sent)
			}
		}
		want, missing := whole.Values()
		got, lacks := part.Values()
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" || missing != lacks || whole.Missing() != part.Missing() {
			t.Fatalf("(-never interrupted +interrupted):\n%s\nlacks %q, want %q", diff, lacks, missing)
		}
		if whole.Final()["memory"] != part.Final()["memory"] && take == study.TakeBest {
			t.Fatalf("memory %v, want %v", part.Final()["memory"], whole.Final()["memory"])
		}
	})
}

// A program that repeats steps after it has continued is not told that it repeats them.
func TestStepsMayBeRepeatedAfterACheckpoint(t *testing.T) {
	objective := []study.Objective{{Metric: "loss", Direction: study.Minimize}}
	first, second := NewCollector(objective), NewCollector(objective)
	for step := range int64(4) {
		first.Add(Report{Step: &step, Metrics: map[string]float64{"loss": float64(step)}})
	}
	second.Continue(first.Reached(1))
	taken := second.Add(Report{Step: new(int64(2)), Metrics: map[string]float64{"loss": 20}})
	if v, _ := second.Values(); len(taken.Ignored) > 0 || v.First() != 20 {
		t.Errorf("value %v, ignored %q", v, taken.Ignored)
	}
}
