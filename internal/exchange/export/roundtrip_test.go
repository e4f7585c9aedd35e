package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/internal/exchange/migrate"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// format is a form in which trials are written and read again.
type format struct {
	write func(*export.Table, io.Writer) error
	read  func(content []byte, spec *study.Spec) ([]migrate.Evaluated, []migrate.Skipped, error)
}

var (
	asCSV = format{(*export.Table).CSV, func(content []byte, spec *study.Spec) ([]migrate.Evaluated, []migrate.Skipped, error) {
		return migrate.CSV(bytes.NewReader(content), spec)
	}}
	asJSONLines = format{(*export.Table).JSONLines, func(content []byte, spec *study.Spec) ([]migrate.Evaluated, []migrate.Skipped, error) {
		return migrate.JSON(bytes.NewReader(content), spec)
	}}
	asParquet = format{(*export.Table).Parquet, migrate.Parquet}
)

// Choices that look like one another, like numbers, or like the syntax of a format.
var choices = []any{
	"", " ", "a", " a", "a ", "A", "\n", "a\nb", "a\r\nb", "\r", "\r\n", `"`, `""`, `"a"`, "a,b", "a;b", "\t", `\n`, "'", "=HYPERLINK(\"x\")",
	"3.1", "3.10", "03.1", "1e3", "0x10", "inf", "nan", "NaN", "-0", "1,5", "True", "TRUE", "null", "None", "COMPLETED", "\ufeff", "ü", "😀",
	"\u2028", "\x00",
	int64(0), int64(7), int64(1000), int64(1<<53 - 1), int64(1 << 53), int64(1<<53 + 1), int64(math.MaxInt64), int64(math.MinInt64),
	int64(math.MaxInt64 - 1),
	0.5, 2.5, 1e-7, -1e300, 1e22, math.SmallestNonzeroFloat64, true, false,
}

// The names of some parameters are also those of columns, of metrics, or have a prefix.
var names = []string{"x", "value", "state", "loss", "worker", "params_x", "parameters", "metrics", "values", "params", "trial", "note",
	"config"}

func drawChoice(t *rapid.T) any {
	switch rapid.IntRange(0, 5).Draw(t, "kind of choice") {
	case 0:
		return rapid.String().Filter(utf8.ValidString).Draw(t, "text")
	case 1:
		return rapid.Int64().Draw(t, "whole")
	case 2:
		return rapid.Float64Range(-1e300, 1e300).Draw(t, "number") + 0
	default:
		return rapid.SampledFrom(choices).Draw(t, "choice")
	}
}

func drawChoices(t *rapid.T, n int) []any {
	return rapid.SliceOfNDistinct(rapid.Custom(drawChoice), n, n+4, study.Format).Draw(t, "choices")
}

// drawParameter draws a parameter of any type. It may depend on one of those before it.
func drawParameter(t *rapid.T, name string, before []study.Parameter) study.Parameter {
	p := study.Parameter{Name: name}
	p.Type = rapid.SampledFrom([]study.Type{study.Float, study.Int, study.Bool, study.Categorical, study.Ordinal, study.Fixed}).Draw(t, "type")
	switch p.Type {
	case study.Float:
		low := rapid.Float64Range(-1e9, 1e9).Draw(t, "min")
		p.Min, p.Max = new(low), new(low+rapid.Float64Range(1e-3, 1e12).Draw(t, "span"))
	case study.Int:
		low := float64(rapid.Int64Range(-1<<52, 1<<51).Draw(t, "min"))
		p.Min, p.Max = new(low), new(low+float64(rapid.Int64Range(1, 1<<51).Draw(t, "span")))
	case study.Categorical, study.Ordinal:
		p.Values = drawChoices(t, 2)
	case study.Fixed:
		p.Value = drawChoices(t, 1)[0]
	}
	var parents []study.Parameter
	for _, b := range before {
		if b.Type == study.Bool || b.Type == study.Categorical {
			parents = append(parents, b)
		}
	}
	if len(parents) > 0 && rapid.Bool().Draw(t, "conditional") {
		parent := rapid.SampledFrom(parents).Draw(t, "parent")
		allowed := parent.Values
		if parent.Type == study.Bool {
			allowed = []any{false, true}
		}
		p.When = map[string][]any{parent.Name: {rapid.SampledFrom(allowed).Draw(t, "when")}}
	}
	return p
}

func drawSpec(t *rapid.T) (*study.Spec, *space.Space) {
	spec := &study.Spec{Objective: study.Objective{Metric: rapid.SampledFrom([]string{"loss", "value", "x", "acc"}).Draw(t, "metric"),
		Direction: study.Minimize}}
	if rapid.Bool().Draw(t, "several") {
		spec.Several = []study.Objective{spec.Objective, {Metric: "seconds", Direction: study.Maximize}}
		spec.Objective = study.Objective{}
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 6, rapid.ID).Draw(t, "names") {
		spec.Parameters = append(spec.Parameters, drawParameter(t, name, spec.Parameters))
	}
	s, err := celspace.New(spec.Parameters, nil, nil)
	if err != nil {
		t.Skip(err)
	}
	spec.Parameters = s.Parameters()
	return spec, s
}

// drawPoint draws a point of the space.
func drawPoint(t *rapid.T, s *space.Space) study.Point {
	point := study.Point{}
	for again := true; again; { // those that a parameter depends on may follow it
		again = false
		for _, p := range s.Parameters() {
			if _, drawn := point[p.Name]; drawn || !s.Active(point, p.Name) {
				continue
			}
			again = true
			switch p.Type {
			case study.Float:
				point[p.Name] = rapid.Float64Range(*p.Min, *p.Max).Draw(t, p.Name)
			case study.Int:
				point[p.Name] = rapid.Int64Range(int64(*p.Min), int64(*p.Max)).Draw(t, p.Name)
			case study.Bool:
				point[p.Name] = rapid.Bool().Draw(t, p.Name)
			default:
				point[p.Name] = rapid.SampledFrom(p.Listed()).Draw(t, p.Name)
			}
		}
	}
	return point
}

// drawTrials draws trials, and what an import reads of those that have completed.
func drawTrials(t *rapid.T, spec *study.Spec, s *space.Space) (trials []view.Trial, want []migrate.Evaluated) {
	number := rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64)
	states := []study.TrialState{study.TrialCompleted, study.TrialCompleted, study.TrialFailed, study.TrialPruned, study.TrialCancelled,
		study.TrialPending}
	for i := range rapid.IntRange(1, 8).Draw(t, "trials") {
		e := migrate.Evaluated{Point: drawPoint(t, s), Metrics: map[string]float64{}}
		metrics := map[string]float64{}
		for _, o := range spec.Objectives() {
			e.Values = append(e.Values, number.Draw(t, "value"))
			// A metric can be what was reported last, and the value the best of them.
			metrics[o.Metric] = number.Draw(t, "objective")
		}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"size", "metric:x", "a,b", "a;b", "ü\u00a0", `"`}),
			rapid.ID).Draw(t, "metrics") {
			metrics[name] = number.Draw(t, name)
			e.Metrics[name] = metrics[name]
		}
		trial := view.Trial{
			Trial: i + 1, State: rapid.SampledFrom(states).Draw(t, "state"), Metrics: metrics, Parameters: view.Parameters(e.Point), Worker: "w",
			Times:  view.Times{Started: time.UnixMilli(1), Ended: time.UnixMilli(2)},
			Labels: map[string]string{"x": "1"}, Note: rapid.SampledFrom(append([]string{"value,\r\n"}, names...)).Draw(t, "note"),
		}
		if trial.State == study.TrialCompleted {
			if trial.Value = &e.Values[0]; len(e.Values) > 1 {
				trial.Values = e.Values
			}
			want = append(want, e)
		}
		trials = append(trials, trial)
	}
	return trials, want
}

// roundTrip holds that what is read of a table's content are the trials.
func roundTrip(t *rapid.T, f format, spec *study.Spec, trials []view.Trial, want []migrate.Evaluated, write func(io.Writer) error) {
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	got, skipped, err := f.read(out.Bytes(), spec)
	if err != nil {
		t.Fatalf("%v\n%q", err, out.Bytes())
	}
	for i := range got {
		got[i].Place = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s\n%v\n%q", diff, skipped, out.Bytes())
	}
	left := slices.DeleteFunc(slices.Clone(trials), func(one view.Trial) bool { return one.State == study.TrialCompleted })
	if len(skipped) != len(left) {
		t.Fatalf("left out %v", skipped)
	}
	for i, one := range left {
		if !strings.Contains(skipped[i].Why, string(one.State)) {
			t.Fatalf("left out %v, want the reason %s", skipped[i], one.State)
		}
	}
}

// Whatever a study holds, importing what was exported gives the same points, values and
// metrics, and leaves out the trials that have not completed.
func checkRoundTrip(t *testing.T, f format) {
	rapid.Check(t, func(t *rapid.T) {
		spec, s := drawSpec(t)
		trials, want := drawTrials(t, spec, s)
		roundTrip(t, f, spec, trials, want, func(w io.Writer) error { return f.write(export.Of(spec, view.List(trials)), w) })
	})
}

func TestRoundTripOfCSV(t *testing.T) { checkRoundTrip(t, asCSV) }

func TestRoundTripOfJSONLines(t *testing.T) { checkRoundTrip(t, asJSONLines) }

func TestRoundTripOfParquet(t *testing.T) { checkRoundTrip(t, asParquet) }

// The same holds for what `fantasia trial list -o json` prints.
func TestRoundTripOfAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, s := drawSpec(t)
		trials, want := drawTrials(t, spec, s)
		for i := range trials {
			trials[i].Objectives = study.MetricNames(spec.Objectives())
		}
		roundTrip(t, asJSONLines, spec, trials, want, func(w io.Writer) error {
			if err := json.NewEncoder(w).Encode(trials); err != nil {
				return fmt.Errorf("encode the list: %w", err)
			}
			return nil
		})
	})
}
