package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// evaluated returns evaluations told at 1, 2, …; NaN means failed.
func evaluated(losses ...float64) []Evaluation {
	var all []Evaluation
	for i, loss := range losses {
		e := Evaluation{Trial: i + 1, End: float64(i + 1), Told: float64(i + 1), Outcome: optimizer.OutcomeCompleted, Value: loss, Loss: loss}
		if math.IsNaN(loss) {
			e.Outcome, e.Value, e.Loss = optimizer.OutcomeFailed, 0, 0
		}
		all = append(all, e)
	}
	return all
}

// minimised is an objective with the minimum 0.
func minimised(name string) *Objective {
	return &Objective{Name: name, Direction: study.Minimize, Minimum: new(float64)}
}

func TestTrace(t *testing.T) {
	nan := math.NaN()
	got := newTrace(&Result{Evaluations: evaluated(nan, 4, 7, 2, nan)}, minimised("f"))
	want := []float64{nan, 4, 4, 2, 2}
	if diff := cmp.Diff(want, got.loss, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("loss (-want +got):\n%s", diff)
	}
	for n, want := range map[int]float64{0: nan, 1: nan, 2: 4, 4: 2, 99: 2} {
		if got := got.after(n); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("after %d: %v, want %v", n, got, want)
		}
	}
	for at, want := range map[float64]float64{0.5: nan, 2: 4, 3.9: 4, 4: 2, 100: 2} {
		if got := got.by(at); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("by %v: %v, want %v", at, got, want)
		}
	}
	if at, ok := got.reaches(4, 10); at != 2 || !ok {
		t.Errorf("4 is reached at %v (%v), want 2", at, ok)
	}
	if _, ok := got.reaches(2, 3.9); ok {
		t.Error("2 is reached by 3.9")
	}
}

// The incumbent is the best value seen. Its loss is the noise-free one, which can rise.
func TestTraceOfNoisyValues(t *testing.T) {
	evaluations := evaluated(5, 3)
	evaluations[0].Value, evaluations[1].Value = 4, 4.5 // the worse point was luckier
	got := newTrace(&Result{Evaluations: evaluations}, minimised("f"))
	if diff := cmp.Diff([]float64{5, 5}, got.loss); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTraceOfMaximum(t *testing.T) {
	o := &Objective{Direction: study.Maximize}
	evaluations := evaluated(1, 3, 2)
	for i := range evaluations {
		evaluations[i].Loss = o.loss(evaluations[i].Value)
	}
	got := newTrace(&Result{Evaluations: evaluations}, o)
	if diff := cmp.Diff([]float64{-1, -3, -3}, got.loss); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := o.measure(-3); got != 3 {
		t.Errorf("a loss of -3 is shown as %v, want 3", got)
	}
}

func TestSpeedup(t *testing.T) {
	of := func(told, loss []float64) trace { return trace{told: told, loss: loss} }
	synchronous := of([]float64{4, 4, 8, 8, 12}, []float64{9, 5, 5, 5, 1})
	for _, tt := range []struct {
		name            string
		asynchronous    trace
		reached, passed float64
	}{
		// At the checkpoint of 4 the regret is 5, first reached at 4, passed at 8.
		{"twice as fast", of([]float64{1, 2, 3}, []float64{9, 4, 4}), 2, 4},
		{"itself", synchronous, 1, 2},
		{"slower", of([]float64{2, 10}, []float64{9, 5}), 0.4, 0.8},
		{"too late", of([]float64{2, 13}, []float64{9, 1}), 0, 0},
		{"never", of([]float64{2, 3}, []float64{9, 6}), 0, 0},
	} {
		reached, passed, ok := speedup(synchronous, tt.asynchronous, 4)
		if reached != tt.reached || passed != tt.passed || !ok {
			t.Errorf("%s: %v, %v (%v), want %v, %v", tt.name, reached, passed, ok, tt.reached, tt.passed)
		}
	}
	if _, _, ok := speedup(of([]float64{1}, []float64{math.NaN()}), synchronous, 1); ok {
		t.Error("a synchronous run without a value has a speed-up")
	}
}

// The standard error of 1, 2, 3, 4 is √(5/3)/2; the quartiles of type 7 are 1.75 and
// 3.25, as in R and NumPy.
func TestEstimate(t *testing.T) {
	e := estimate([]float64{4, math.NaN(), 1, 3, 2})
	se := math.Sqrt(5.0/3) / 2
	want := &Estimate{N: 4, Mean: 2.5, SE: &se, Low: 1.75, Median: 2.5, High: 3.25}
	if diff := cmp.Diff(want, e, cmpopts.EquateApprox(0, 1e-15)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e := estimate([]float64{7}); e.SE != nil || e.Median != 7 || e.text() != "7" {
		t.Errorf("one value: %+v", e)
	}
	if e := estimate([]float64{math.NaN()}); e != nil || e.text() != "-" || e.median() != "-" {
		t.Errorf("no value: %+v", e)
	}
}

// twoByTwo is a plan of two variants and two functions, with runs of known regret.
func twoByTwo() (*Plan, []*Group) {
	p := &Plan{
		Variants: []Variant{{Label: "a"}, {Label: "b"}}, Objectives: []*Objective{minimised("f"), minimised("g")},
		Modes: []Mode{Synchronous, Asynchronous}, Laws: []string{"lognormal"}, Seeds: []uint64{0}, Workers: 2, Trials: 2,
	}
	losses := map[string][]float64{"af": {1, 1e-2}, "ag": {1, 1e-4}, "bf": {1, 1e-3}, "bg": {1, 1e-3}}
	groups := p.groups()
	for _, g := range groups {
		l := losses[g.Variant.Label+g.Objective.Name]
		batch, free := evaluated(l...), evaluated(append(l, 1e-6)...)
		for i := range batch {
			batch[i].Told = 4
		}
		free[0].Pending, free[1].Arrived = 1, 1
		g.Runs[Synchronous] = &Run{Result: Result{Evaluations: batch, Makespan: 4, End: 4, Idle: 0.5}, Suggest: []float64{0.002}}
		g.Runs[Asynchronous] = &Run{
			Spec:   Spec{Horizon: 4},
			Result: Result{Evaluations: free, Makespan: 2, End: 4}, Suggest: []float64{0.001, 0.003},
		}
	}
	return p, groups
}

func TestSummarize(t *testing.T) {
	p, groups := twoByTwo()
	s := Summarize(p, groups, 2)
	rows := map[string]Row{}
	for _, r := range s.Rows {
		rows[string(r.Mode)+" "+r.Variant+" "+r.Objective] = r
	}
	if len(rows) != 12 || len(s.Rows) != 12 {
		t.Fatalf("%d rows, want 2 modes of 2 variants on 2 functions and on all", len(s.Rows))
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	a, b := rows["async a all"], rows["async b all"]
	near("a's regret", a.Final.Mean, -3)
	near("its standard error", *a.Final.SE, 1)
	near("b's regret", b.Final.Mean, -3)
	// b less a: −3 − (−2) on f, −3 − (−4) on g.
	near("the difference", b.Difference.Mean, 0)
	near("the difference's standard error", *b.Difference.SE, 1)
	near("b at equal time", b.EqualTime.Mean, -6)
	near("b's speed-up", b.Speedup.Reached.Median, 2) // at 2 instead of 4
	near("b's pending", b.Pending, 1.0/3)
	near("b's arrived", b.Arrived, 1.0/3)
	near("the median of a request", b.Suggest.P50, 0.002)
	near("the idle share", rows["sync a f"].Idle, 0.5)
	if a.Difference != nil || rows["sync a all"].Speedup != nil || rows["sync a all"].EqualTime != nil {
		t.Error("the first variant differs from itself, or sync has a speed-up")
	}
	if s.Empty() {
		t.Error("it is empty")
	}
}

// Below 0 is better, for any direction and measure.
func TestLess(t *testing.T) {
	for _, tt := range []struct {
		o    *Objective
		a, b float64
	}{
		{minimised("f"), -3, -2}, {&Objective{Direction: study.Minimize}, 2, 3}, {&Objective{Direction: study.Maximize}, 3, 2},
	} {
		if got := tt.o.less(tt.a, tt.b); got != -1 {
			t.Errorf("%s: %v less %v is %v, want -1", tt.o.Direction, tt.a, tt.b, got)
		}
	}
}

// A regret below the floor, or below 0 due to rounding, becomes the floor.
func TestFloor(t *testing.T) {
	o := minimised("f")
	for _, loss := range []float64{0, -1e-16, 1e-12} {
		if got := o.measure(loss); got != math.Log10(Floor) {
			t.Errorf("a regret of %v is shown as %v, want %v", loss, got, math.Log10(Floor))
		}
	}
}

func TestMarkdown(t *testing.T) {
	p, groups := twoByTwo()
	var b strings.Builder
	if err := WriteMarkdown(&b, Summarize(p, groups, 2).Tables()); err != nil {
		t.Fatal(err)
	}
	const want = `**all objectives, lognormal durations: log10 regret after 2 evaluations, 2 workers**

| optimiser | mode | runs | mean | median | less the first | less sync | at equal time | speed-up | never | makespan | idle | pending | arrived | suggest p50 / p95 |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| a | sync | 2 | -3.0 ± 1.0 | -3 | - | - | - | - | - | 4 | 50% | 0.0 | 0.0 | 2 / 2 ms |
| b | sync | 2 | -3 | -3 | 0.0 ± 1.0 | - | - | - | - | 4 | 50% | 0.0 | 0.0 | 2 / 2 ms |
| a | async | 2 | -3.0 ± 1.0 | -3 | - | 0 | -6 | 2.00 | 0/2 | 2 | 0% | 0.3 | 0.3 | 2 / 3 ms |
| b | async | 2 | -3 | -3 | 0.0 ± 1.0 | 0 | -6 | 2.00 | 0/2 | 2 | 0% | 0.3 | 0.3 | 2 / 3 ms |

**each objective, lognormal durations: mean after 2 evaluations**

| objective | a, sync | b, sync | a, async | b, async |
| --- | --- | --- | --- | --- |
| f | -2 | -3 | -2 | -3 |
| g | -4 | -3 | -4 | -3 |
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The plots are well-formed, and have a line for each variant and mode.
func TestPlots(t *testing.T) {
	p, groups := twoByTwo()
	dir := t.TempDir()
	files, err := WritePlots(dir, p, groups)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"f-lognormal-evaluations.svg", "f-lognormal-time.svg", "g-lognormal-evaluations.svg", "g-lognormal-time.svg"}
	for i := range want {
		want[i] = filepath.Join(dir, want[i])
	}
	if !slices.Equal(files, want) {
		t.Fatalf("files %q, want %q", files, want)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(content)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, line := range []string{"a, sync", "b, sync", "a, async", "b, async", "regret"} {
			if !bytes.Contains(content, []byte(line)) {
				t.Errorf("%s does not name %q", name, line)
			}
		}
	}
}

func TestCurves(t *testing.T) {
	o := minimised("f")
	traces := []trace{
		{told: []float64{1, 2, 3}, loss: []float64{math.NaN(), 8, 4}},
		{told: []float64{1, 2}, loss: []float64{2, 2}},
	}
	c := againstEvaluations(traces, o)
	// The one evaluation after which both have a value, and the median of 2 and 8.
	if diff := cmp.Diff([]picture.Point{{X: 2, Y: 5}}, c.Points, cmpopts.IgnoreUnexported(picture.Point{})); diff != "" {
		t.Errorf("the curve (-want +got):\n%s", diff)
	}
	if c.Low[0] != 3.5 || c.High[0] != 6.5 {
		t.Errorf("the quartiles of 2 and 8 are %v and %v; want 3.5 and 6.5", c.Low[0], c.High[0])
	}
	c = againstTime(traces, o)
	last := c.Points[len(c.Points)-1]
	if first := c.Points[0]; first.X < 2 || first.X > 2.1 || last.X != 3 {
		t.Errorf("the curve goes from %v to %v, want 2 to 3", first.X, last.X)
	}
	if last.Y != 3 {
		t.Errorf("it ends at %v, want 3: a run that has ended stays where it was", last.Y)
	}
}

func TestFileName(t *testing.T) {
	if got := fileName("my/study", "lognormal:0.5", "time"); got != "my-study-lognormal-0.5-time" {
		t.Errorf("file name %q", got)
	}
}
