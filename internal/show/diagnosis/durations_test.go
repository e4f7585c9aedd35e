package diagnosis_test

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// timed diagnoses 60 trials in three dimensions that took so many seconds at each place.
func timed(t *testing.T, seconds func(x []float64, rng *rand.Rand) float64) (*optimizer.Problem, []time.Duration, *diagnosis.Diagnosis) {
	t.Helper()
	space := optimizertest.Cube(t, 3, 0, 1)
	p := evaluated(t, space, 60, 1, func(x []float64, _ *rand.Rand) float64 { return (x[0] - 0.7) * (x[0] - 0.7) })
	encoding, rng := optimizer.NewEncoding(space), rand.New(rand.NewPCG(5, 5))
	took := make([]time.Duration, len(p.Observations))
	for i, o := range p.Observations {
		took[i] = time.Duration(seconds(encoding.Encode(o.Point), rng) * float64(time.Second))
	}
	r, _, err := diagnosis.Examine(t.Context(), named("timed", nil), p, took)
	if err != nil {
		t.Fatal(err)
	}
	return p, took, r
}

// timeOf returns the finding about the time; false if there is none.
func timeOf(d *diagnosis.Diagnosis) (diagnosis.Finding, bool) {
	for _, f := range d.Findings {
		if f.Topic == diagnosis.TopicTime {
			return f, true
		}
	}
	return diagnosis.Finding{}, false
}

// The logarithm of the time is a sum of two effects, 3 x1 and x2: of its variance over the unit cube, x1 has
// 9/10 and x2 1/10, by the definition of Sobol's indices.
func TestDurationsNameWhatDecides(t *testing.T) {
	p, took, r := timed(t, func(x []float64, _ *rand.Rand) float64 { return 5 * math.Exp(3*x[0]+x[1]) })
	d := r.Durations
	if d == nil || d.Trials != 60 || len(d.Importance) != 3 || d.Explained < 0.9 {
		t.Fatalf("the durations are %+v", d)
	}
	for i, want := range []struct {
		name  string
		share float64
	}{{"x1", 0.9}, {"x2", 0.1}, {"x3", 0}} {
		if got := d.Importance[i]; got.Parameter != want.name || math.Abs(got.Total-want.share) > 0.05 {
			t.Errorf("importance %d is %+v, want %s with %g", i+1, got, want.name, want.share)
		}
	}
	f, _ := timeOf(r)
	if !regexp.MustCompile(`^Trials take \d+s; what decides how long: x1 \((89|9\d)%; (19|2\d) times as long at 1 as at 0\)\. `+
		`The best trial .* at most half of the best trial's time, the model expects`).MatchString(f.Statement) || !f.Judged {
		t.Errorf("the finding is %+v", f)
	}
	// By hand: the best trial, and the best of those that took at most half of its time.
	best := func(most time.Duration) (at int) {
		at = -1
		for i, o := range p.Observations {
			if took[i] <= most && (at < 0 || o.Values.First() < p.Observations[at].Values.First()) {
				at = i
			}
		}
		return at
	}
	first := best(math.MaxInt64)
	second := best(took[first] / 2)
	want := diagnosis.Faster{
		Best: first + 1, BestValue: p.Observations[first].Values.First(), BestSeconds: took[first].Seconds(),
		Trial: second + 1, Value: p.Observations[second].Values.First(), Seconds: took[second].Seconds(),
	}
	if d.Faster == nil || *d.Faster != want {
		t.Errorf("the faster trial is %+v, want %+v", d.Faster, want)
	}
}

// By a grid over the true functions: what half of the time of the best trial costs. The partial dependence is that of its definition.
func TestHalfTheTime(t *testing.T) {
	seconds := func(x []float64, _ *rand.Rand) float64 { return 5 * math.Exp(3*x[0]+0.3*x[1]) }
	p, took, r := timed(t, seconds)
	best := p.Best()
	encoding := optimizer.NewEncoding(p.Space)
	here := encoding.Encode(best.Point)
	want := math.Inf(1)
	for i := range 1001 {
		for j := range 11 {
			x := []float64{float64(i) / 1000, float64(j) / 10}
			if seconds(x, nil) <= seconds(here, nil)/2 {
				want = min(want, (x[0]-0.7)*(x[0]-0.7))
			}
		}
	}
	h := r.Durations.Half
	if h == nil || math.Abs(h.Value-want) > 0.01 || math.Abs(h.Instead-best.Mean) > 0.005 || h.Low > h.Value || h.High < h.Value {
		t.Fatalf("half the time costs %+v, want %.3f instead of %.3f", h, want, best.Mean)
	}
	if at := seconds(encoding.Encode(h.Parameters), nil); at > 0.55*seconds(here, nil) || math.Abs(at/h.Seconds-1) > 0.1 {
		t.Errorf("at %v a trial takes %.1f s, %.1f s were expected; the best one takes %.1f s", h.Parameters, at, h.Seconds, seconds(here, nil))
	}
	_, m, err := diagnosis.Examine(t.Context(), named("timed", nil), p, took)
	if err != nil {
		t.Fatal(err)
	}
	at, expected := m.Took("x1")
	if len(at) < 10 {
		t.Fatalf("the time is known at %v", at)
	}
	for i, x := range at { // log 5 + 3x + 0.3·½
		if truth := 5 * math.Exp(3*x+0.15); math.Abs(expected[i].Median/truth-1) > 0.1 || expected[i].Low > expected[i].Median ||
			expected[i].High < expected[i].Median {
			t.Errorf("at %g, %+v s are expected, want %.1f", x, expected[i], truth)
		}
	}
}

// Where nothing can be said of half the time, the finding says why.
func TestHalfTheTimeUnknown(t *testing.T) {
	p, took, r := timed(t, func(x []float64, _ *rand.Rand) float64 { return 10 * math.Exp(0.4*x[0]) })
	if f, _ := timeOf(r); r.Durations.Half != nil || !strings.Contains(f.Statement, "not known: no point is expected to take half") {
		t.Errorf("of times that hardly differ: %+v, %s", r.Durations.Half, f.Statement)
	}
	p.Limits = []study.Limit{{Metric: "m", Max: new(1.0)}}
	for i := range p.Observations {
		p.Observations[i].Excess = []float64{-1}
	}
	r, _, err := diagnosis.Examine(t.Context(), named("limited", nil), p, took)
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := timeOf(r); r.Durations.Half != nil || !strings.Contains(f.Statement, "not known: there are several objectives or limits") {
		t.Errorf("with limits: %+v, %s", r.Durations.Half, f.Statement)
	}
	_, _, r = timed(t, func(_ []float64, rng *rand.Rand) float64 { return 60 * math.Exp(rng.NormFloat64()) })
	if f, _ := timeOf(r); r.Durations.Half != nil || !strings.Contains(f.Statement, "predicts the time of unseen trials poorly") {
		t.Errorf("of random times: %+v, %s", r.Durations.Half, f.Statement)
	}
}

func TestDurationsThatParametersDoNotDecide(t *testing.T) {
	_, _, r := timed(t, func(_ []float64, rng *rand.Rand) float64 { return 60 * math.Exp(rng.NormFloat64()) })
	if f, ok := timeOf(r); !ok || !f.Judged || !regexp.MustCompile(`the parameters hardly decide how long`).MatchString(f.Statement) {
		t.Errorf("the finding is %+v", f)
	}
	if d := r.Durations; d == nil || d.Importance != nil || !(d.Low < d.Median && d.Median < d.High) {
		t.Errorf("the durations are %+v", d)
	}
	_, _, r = timed(t, func([]float64, *rand.Rand) float64 { return 60 })
	if f, _ := timeOf(r); r.Durations == nil || r.Durations.Faster != nil || !f.Judged {
		t.Errorf("of equal durations, the finding is %+v", f)
	}
}

// Nothing is said of trials that nobody waits for, and of times that nobody knows.
func TestDurationsThatDoNotMatter(t *testing.T) {
	_, _, r := timed(t, func(x []float64, _ *rand.Rand) float64 { return 0.1 + x[0]/2 })
	if f, ok := timeOf(r); ok || r.Durations != nil {
		t.Errorf("of short trials, the finding is %+v, and the durations are %+v", f, r.Durations)
	}
	p, took, _ := timed(t, func([]float64, *rand.Rand) float64 { return 60 })
	clear(took[diagnosis.MinCompleted-1:])
	r, _, err := diagnosis.Examine(t.Context(), named("unknown", nil), p, took)
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := timeOf(r); !ok || f.Judged || r.Durations != nil {
		t.Errorf("of 19 known times, the finding is %+v, and the durations are %+v", f, r.Durations)
	}
}

// A faster trial outside of a limit is none, and the direction counts.
func TestFasterWithinLimits(t *testing.T) {
	p, took, _ := timed(t, func(x []float64, _ *rand.Rand) float64 { return 5 * math.Exp(3*x[0]) })
	p.Direction, p.Limits = study.Maximize, []study.Limit{{Metric: "m", Max: new(1.0)}}
	allowed := map[int]bool{3: true, 17: true, 40: true}
	for i := range p.Observations {
		o := &p.Observations[i]
		if o.Excess = []float64{1}; allowed[o.Trial] {
			o.Excess = []float64{-1}
		}
	}
	for trial, seconds := range map[int]float64{3: 100, 17: 50, 40: 51} {
		took[trial-1] = time.Duration(seconds * float64(time.Second))
		p.Observations[trial-1].Values = study.Values{seconds}
	}
	r, _, err := diagnosis.Examine(t.Context(), named("limited", nil), p, took)
	if err != nil {
		t.Fatal(err)
	}
	want := diagnosis.Faster{Best: 3, BestValue: 100, BestSeconds: 100, Trial: 17, Value: 50, Seconds: 50}
	if d := r.Durations; d == nil || d.Faster == nil || *d.Faster != want {
		t.Errorf("the durations are %+v, want the faster trial %+v", d, want)
	}
}
