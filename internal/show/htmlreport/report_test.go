package htmlreport

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// hostile is a value that would run a script in a page that does not escape it.
const hostile = `</script><script>alert(1)</script><img src=x onerror='alert(2)'>&"`

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// source returns a study of n ended trials, drawn with a seed: every 9th has failed, every
// 7th was stopped early, and the last one still runs.
func source(t testing.TB, n int) *Source {
	t.Helper()
	parsed, err := file.Parse([]byte(fmt.Sprintf(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: bowl}
spec:
  objective: {metric: loss, direction: minimize}
  parameters:
    - {name: rate, type: float, min: 1e-4, max: 1, scale: log}
    - {name: width, type: int, min: 1, max: 64}
    - {name: kind, type: categorical, values: [plain, %q]}
  budget: {maxTrials: %d}
  parallelism: 4
  trial: {command: [train]}
`, hostile, n+1)))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	src := &Source{Study: parsed, Now: epoch.Add(time.Duration(n) * time.Second), Version: "test", Reason: "because of " + hostile}
	src.View = view.Study{Study: "bowl", State: study.Running, Trials: record.Counts{}}
	var trials view.List
	for i := range n + 1 {
		at := epoch.Add(time.Duration(i) * 250 * time.Millisecond)
		rate, width := math.Pow(10, -4*random.Float64()), 1+random.IntN(64)
		value := math.Pow(math.Log10(rate)+2, 2) + float64(width)/64 + 0.01*random.NormFloat64()
		trial := view.Trial{
			Trial: i + 1, State: study.TrialCompleted, Attempts: 1, Worker: fmt.Sprintf("w-%d", i%2), Staleness: i % 3, Source: "model",
			Parameters: view.Parameters{"rate": rate, "width": int64(width), "kind": []string{"plain", hostile}[i%2]},
			Value:      &value, Metrics: map[string]float64{"loss": value},
			Times: view.Times{Suggested: at, Claimed: at.Add(10 * time.Millisecond), Started: at.Add(20 * time.Millisecond),
				Ended: at.Add(time.Second), Folded: at.Add(1010 * time.Millisecond)},
		}
		run := view.Run{Number: 1, State: study.AttemptSucceeded, Worker: trial.Worker, Opened: at, Claimed: trial.Times.Claimed,
			Started: trial.Times.Started, Ended: trial.Times.Ended}
		switch {
		case i == n:
			trial.State, trial.Value = study.TrialRunning, nil
			trial.Times.Ended, trial.Times.Folded, run.Ended, run.State = time.Time{}, time.Time{}, time.Time{}, study.AttemptOpen
			src.View.Trials.Running++
		case i%9 == 8:
			trial.State, trial.Value, trial.Failure = study.TrialFailed, nil, &messaging.Failure{Reason: "exit", Message: hostile}
			run.State, run.Reason = study.AttemptFailed, "exit"
			src.View.Trials.Failed++
		case i%7 == 6:
			trial.State, trial.Stopped = study.TrialPruned, &view.Stopped{Step: 3, Value: &value, Reason: "median", At: trial.Times.Ended}
			run.State = study.AttemptPruned
			src.View.Trials.Pruned++
		default:
			src.View.Trials.Completed++
			trial.Measurements = []view.Curve{{Metric: "loss", Steps: []int64{1, 2, 3}, Values: []float64{value + 2, value + 1, value}}}
			if b := src.View.Best; b == nil || value < b.Value {
				src.View.Best = &view.Best{Trial: i + 1, Value: value, Parameters: trial.Parameters}
			}
		}
		trial.Runs = []view.Run{run}
		trials = append(trials, trial)
	}
	src.Trials = trials
	return src
}

// list returns the trials of a source of these tests, to change them.
func list(src *Source) view.List { return src.Trials.(view.List) }

func pageOf(t testing.TB, ctx context.Context, src *Source) string {
	t.Helper()
	made, err := Of(ctx, src)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := made.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// figureOf returns the part of a page that shows a figure.
func figureOf(t *testing.T, page, id string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `<figure id="`+id+`"`)
	if !found {
		t.Fatalf("the report has no figure %s", id)
	}
	inside, _, _ := strings.Cut(rest, "</figure>")
	return inside
}

var (
	rows       = regexp.MustCompile(`<tr>(<td.*)</tr>`)
	exactValue = regexp.MustCompile(`data-value="([^"]*)"`)
)

// The table has each trial's exact numbers, the best trial first.
func TestNumbers(t *testing.T) {
	src := source(t, 60)
	all := pageOf(t, t.Context(), src)
	seen := map[int]bool{}
	last := math.Inf(-1)
	for _, row := range rows.FindAllStringSubmatch(figureOf(t, all, "trials"), -1) {
		var numbers []string
		for _, m := range exactValue.FindAllStringSubmatch(row[1], -1) {
			numbers = append(numbers, m[1])
		}
		number, err := strconv.Atoi(numbers[0])
		if err != nil || seen[number] {
			t.Fatalf("the row %q is of trial %q: %v", row[1], numbers[0], err)
		}
		seen[number] = true
		trial := src.Trials.At(number - 1)
		if trial.Value == nil {
			continue
		}
		if got, err := strconv.ParseFloat(numbers[1], 64); err != nil || got != *trial.Value {
			t.Errorf("trial %d has the value %q in the table, want %v", number, numbers[1], *trial.Value)
		}
		if got, err := strconv.ParseFloat(numbers[2], 64); err != nil || got != trial.Parameters["rate"] {
			t.Errorf("trial %d has the rate %q in the table, want %v", number, numbers[2], trial.Parameters["rate"])
		}
		if trial.State == study.TrialCompleted {
			if *trial.Value < last {
				t.Errorf("trial %d with %v comes after one with %v", number, *trial.Value, last)
			}
			last = *trial.Value
		}
	}
	if len(seen) != src.Trials.Len() {
		t.Errorf("the table has %d trials, want %d", len(seen), src.Trials.Len())
	}
	if first := rows.FindStringSubmatch(figureOf(t, all, "trials")); !strings.Contains(first[1],
		fmt.Sprintf(`data-value="%d"`, src.View.Best.Trial)) {
		t.Errorf("the table begins with %q, want trial %d", first[1], src.View.Best.Trial)
	}
	summary := fmt.Sprintf("%d evaluations ended: %d completed, %d failed, %d stopped early, 1 still open. The study minimises loss.",
		src.View.Trials.Ended(), src.View.Trials.Completed, src.View.Trials.Failed, src.View.Trials.Pruned)
	for _, want := range []string{summary, `<figure id="contour-`} {
		if !strings.Contains(all, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for id, want := range map[string]string{
		"points": fmt.Sprintf(`data-value="%d"`, src.View.Best.Trial), "failures": "exit", "importances": "rate", "fit": "<svg", "curves": "<svg",
		"parallel": "<svg", "staleness": "<svg", "pending": "The gain: in batches of", "workers": "w-1", "findings": "variance",
		"slice-0": "<svg",
	} {
		if !strings.Contains(figureOf(t, all, id), want) {
			t.Errorf("the figure %s lacks %q", id, want)
		}
	}
}

// If trials take seconds, the report has pictures of their time. One shows which parameters decide it. The others show the time
// against each parameter, the one that decides most first.
func TestTimesOfTrials(t *testing.T) {
	src := source(t, 60)
	for i := range list(src) {
		one := &list(src)[i]
		if one.State.Terminal() {
			took := time.Duration(float64(one.Parameters["width"].(int64)) * float64(time.Second))
			one.Times.Ended = one.Times.Started.Add(took)
		}
	}
	page := pageOf(t, t.Context(), src)
	bars := figureOf(t, page, "importances-duration")
	if w, r := strings.Index(bars, `data-name="width"`), strings.Index(bars, `data-name="rate"`); w < 0 || r < w {
		t.Errorf("what decides the time is at %d and %d of %s", w, r, bars)
	}
	for id, want := range map[string]string{
		"duration-1": "width", "duration-0": "rate", "duration-2": "kind",
		"findings": "what decides how long: width (", "slice-0": "expected by the model",
	} {
		if !strings.Contains(figureOf(t, page, id), want) {
			t.Errorf("the figure %s lacks %q", id, want)
		}
	}
	if strings.Index(page, `<figure id="duration-1"`) > strings.Index(page, `<figure id="duration-0"`) {
		t.Error("the parameter that decides the time does not come first")
	}
	f, err := Single(t.Context(), src, "duration", []string{"width"})
	if err != nil {
		t.Fatal(err)
	}
	drawn := string(f.Pictures[0].SVG(picture.Frame{}))
	for _, want := range []string{"seconds", "expected by the model", fmt.Sprintf("trial %d: width = ", src.View.Best.Trial)} {
		if !strings.Contains(drawn, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if _, err := Single(t.Context(), src, "importances-duration", nil); err != nil {
		t.Error(err)
	}
}

// The findings say what the earlier studies of a study are worth.
func TestEarlierStudies(t *testing.T) {
	src := source(t, 60)
	march := study.Earlier{Study: "march"}
	for i := range 40 {
		rate := math.Pow(10, -4*float64(i)/39)
		march.Trials = append(march.Trials, study.EarlierTrial{
			Parameters: map[string]any{"rate": rate, "width": float64(1 + i*7%64)}, Value: math.Pow(math.Log10(rate)+2, 2),
		})
	}
	src.Study.Spec.LearnFrom = []study.Earlier{march}
	all := figureOf(t, pageOf(t, t.Context(), src), "findings")
	for _, want := range []string{"earlier studies", "Ranks points as this study does: march.", "march: rank correlation 0.9"} {
		if !strings.Contains(all, want) {
			t.Errorf("the findings lack %q", want)
		}
	}
}

// No word of a user's becomes a part of the page, which loads and runs nothing.
func TestNothingFromUsersIsMarkup(t *testing.T) {
	all := pageOf(t, t.Context(), source(t, 30))
	for _, bad := range []string{"<script", "<img", "onerror='", "http://", "url("} {
		if i := strings.Index(strings.ReplaceAll(all, `xmlns="http://www.w3.org/2000/svg"`, ""), bad); i >= 0 {
			t.Errorf("the page has %s: …%.80s", bad, all[max(0, i-20):])
		}
	}
	if !strings.Contains(all, "&lt;script&gt;alert(1)") {
		t.Error("the page does not show the value that looks like a script")
	}
	if !strings.Contains(all, `<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src &#39;sha256-`) {
		t.Error("the page has no policy against what it does not contain")
	}
	d := xml.NewDecoder(strings.NewReader(all))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
	}
}

// A study without trials, or without time to fit a model, has a report that says so.
func TestLittleToReport(t *testing.T) {
	none := source(t, 1)
	none.Trials, none.View = view.List(nil), view.Study{Study: "bowl", State: study.Running}
	all := pageOf(t, t.Context(), none)
	for _, want := range []string{"0 evaluations ended", "No trial has completed.", "There is no model yet",
		"No worker has had an evaluation.", "Nothing has been evaluated."} {
		if !strings.Contains(all, want) {
			t.Errorf("the report of no trials lacks %q", want)
		}
	}
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	all = pageOf(t, hurried, source(t, 30))
	if !strings.Contains(all, "The model was left out") || !strings.Contains(all, `<figure id="history"`) {
		t.Error("a report without time for a model does not say so, or has no history")
	}
}

// BenchmarkReport measures the time of a report, and its size in bytes.
func BenchmarkReport(b *testing.B) {
	for _, n := range []int{60, 5_000, 50_000} {
		src := source(b, n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = len(pageOf(b, b.Context(), src))
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
