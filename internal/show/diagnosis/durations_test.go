package diagnosis_test

import (
	"math"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// timed diagnoses 60 trials in three dimensions that took so many seconds at each place.
func timed(t *testing.T, seconds func(x []float64, rng *rand.Rand) float64) (*optimizer.Problem, []time.Duration, *diagnosis.Report) {
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
func timeOf(r *diagnosis.Report) (diagnosis.Finding, bool) {
	for _, f := range r.Findings {
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
	if !regexp.MustCompile(`^Trials take \d+s; what decides how long: x1 \(9\d%\)\. The best trial`).MatchString(f.Statement) || !f.Judged {
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
