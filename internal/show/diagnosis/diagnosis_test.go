package diagnosis_test

import (
	gocmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// evaluated returns a problem whose observations are n points of a space by the
// Sobol sequence, evaluated by f of the coordinates in the unit cube, each
// repeated so many times.
func evaluated(t *testing.T, space *space.Space, n, repeats int, f func(x []float64, rng *rand.Rand) float64) *optimizer.Problem {
	t.Helper()
	p := &optimizer.Problem{Space: space, Direction: study.Minimize, MaxTrials: n * repeats, Parallelism: 4, Seed: 1, First: 1}
	suggestions, _, err := sobol.New().Suggest(t.Context(), p, nil, n, optimizer.NewRand(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	encoding, rng := optimizer.NewEncoding(space), rand.New(rand.NewPCG(3, 3))
	for _, s := range suggestions {
		for range repeats {
			p.Observations = append(p.Observations, optimizer.Observation{
				Trial: len(p.Observations) + 1, Point: s.Point,
				Outcome: optimizer.OutcomeCompleted, Values: []float64{f(encoding.Encode(s.Point), rng)},
			})
		}
	}
	return p
}

// named returns a study of the default algorithm.
func named(name string, settings map[string]any) *study.Study {
	s := &study.Study{Metadata: study.Metadata{Name: name}}
	s.Spec.Algorithm.Settings = settings
	return s
}

func diagnose(t *testing.T, p *optimizer.Problem) *diagnosis.Diagnosis {
	t.Helper()
	r, _, err := diagnosis.Examine(t.Context(), named("synthetic", nil), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("a diagnosis that is no JSON: %v", err)
	}
	checkFindings(t, r, p)
	return r
}

// checkFindings checks what every diagnosis must have: one finding a topic, with
// evidence that counts trials or evaluations, and none that recommends two values
// of a setting.
func checkFindings(t *testing.T, d *diagnosis.Diagnosis, p *optimizer.Problem) {
	t.Helper()
	topics := []diagnosis.Topic{
		diagnosis.TopicModel, diagnosis.TopicNoise, diagnosis.TopicSpread, diagnosis.TopicTransform,
		diagnosis.TopicWarp, diagnosis.TopicAcquisition, diagnosis.TopicParameters,
	}
	if p.Objectives != nil {
		topics = append(topics, diagnosis.TopicObjectives)
	}
	if p.Limits != nil {
		topics = append(topics, diagnosis.TopicLimits)
	}
	if d.More != nil {
		topics = append(topics, diagnosis.TopicMore)
	}
	var got []diagnosis.Topic
	settings := map[string]string{}
	for _, f := range d.Findings {
		got = append(got, f.Topic)
		if f.Statement == "" || !regexp.MustCompile(`\d+ (trials|evaluations)`).MatchString(f.Evidence) {
			t.Errorf("%s: statement %q with evidence %q", f.Topic, f.Statement, f.Evidence)
		}
		if strings.HasPrefix(f.Statement, "Not judged: ") == f.Judged {
			t.Errorf("%s: judged is %v with the statement %q", f.Topic, f.Judged, f.Statement)
		}
		for _, m := range regexp.MustCompile("`(\\w+): (\\w+)`").FindAllStringSubmatch(f.Statement, -1) {
			if value, said := settings[m[1]]; said && value != m[2] {
				t.Errorf("the findings recommend %s: %s and %s: %s", m[1], value, m[1], m[2])
			}
			settings[m[1]] = m[2]
		}
	}
	if diff := cmp.Diff(topics, got); diff != "" {
		t.Errorf("want one finding a topic (-want +got):\n%s", diff)
	}
}

// finding returns the diagnosis's finding of a topic.
func finding(d *diagnosis.Diagnosis, topic diagnosis.Topic) diagnosis.Finding {
	i := slices.IndexFunc(d.Findings, func(f diagnosis.Finding) bool { return f.Topic == topic })
	return d.Findings[i]
}

// says reports whether the statement of a topic's finding contains words.
func says(d *diagnosis.Diagnosis, topic diagnosis.Topic, words string) bool {
	return strings.Contains(finding(d, topic).Statement, words)
}

// bowl is a smooth function of its first two coordinates, from 0 to 2.
func bowl(x []float64) float64 { return 4*(x[0]-0.3)*(x[0]-0.3) + math.Abs(x[1]-0.5) }

// The recommended trial is the study's, which has the best value where the study
// says that there is no noise.
func TestRecommendedBySettings(t *testing.T) {
	p := evaluated(t, optimizertest.Cube(t, 2, 0, 1), 12, 4, func(x []float64, rng *rand.Rand) float64 { return bowl(x) + rng.NormFloat64() })
	best := slices.MinFunc(p.Observations, func(a, b optimizer.Observation) int { return gocmp.Compare(a.Values.First(), b.Values.First()) }).
		Trial
	if got := diagnose(t, p).Noise.Recommended; got == nil || *got == best {
		t.Fatalf("recommended in spite of noise is %v, trial %d is the luckiest", got, best)
	}
	r, _, err := diagnosis.Examine(t.Context(), named("exact", map[string]any{"noise": "no"}), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Noise.Recommended; got == nil || *got != best {
		t.Errorf("recommended with noise: no is %v, want the best one, %d", got, best)
	}
	for _, algorithm := range []string{"random", "sobol"} { // as the API has it
		s := named("blind", nil)
		s.Spec.Algorithm.Name = algorithm
		if r, _, err = diagnosis.Examine(t.Context(), s, p, nil); err != nil {
			t.Fatal(err)
		}
		if got := r.Noise.Recommended; got != nil || !says(r, diagnosis.TopicNoise,
			fmt.Sprintf("(trial %d) is partly luck, and `%s` recommends no trial, because it has no model", best, algorithm)) {
			t.Errorf("%s: recommended is %v: %s", algorithm, got, finding(r, diagnosis.TopicNoise).Statement)
		}
	}
}

// Of several objectives a front is recommended.
func TestRecommendedFront(t *testing.T) {
	p := evaluated(t, optimizertest.Cube(t, 2, 0, 1), 12, 4, func(x []float64, rng *rand.Rand) float64 { return bowl(x) + rng.NormFloat64() })
	p.Objectives = []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Minimize}}
	for i := range p.Observations {
		p.Observations[i].Values = append(p.Observations[i].Values, p.Observations[i].Point["x1"].(float64))
	}
	r := diagnose(t, p)
	if r.Noise.Recommended != nil || !r.Noise.Front || !says(r, diagnosis.TopicNoise, "rely on the recommended front") {
		t.Errorf("recommended are %v, %v: %s", r.Noise.Recommended, r.Noise.Front, finding(r, diagnosis.TopicNoise).Statement)
	}
}

func TestEvenNoise(t *testing.T) {
	const sd = 0.1
	r := diagnose(t, evaluated(t, optimizertest.Cube(t, 3, 0, 1), 16, 4, func(x []float64, rng *rand.Rand) float64 {
		return bowl(x) + sd*rng.NormFloat64()
	}))
	h := r.Heteroscedasticity
	if h.Groups != diagnosis.ByReplicates || h.Raw.Groups != 16 || h.Raw.Values != 64 {
		t.Errorf("groups are %s, %+v; want the 16 points with 4 evaluations each", h.Groups, h.Raw)
	}
	if h.Raw.Differs() {
		t.Errorf("even noise is found to differ: %+v", h.Raw)
	}
	if s := r.Noise.Replicates; s.Points != 16 || s.Evaluations != 64 || !within(s.SD, sd, 0.25) {
		t.Errorf("replicates %+v, want 64 of 16 points with an sd of %v", s, sd)
	}
	if share := sd * sd / (sd*sd + r.Noise.Signal*r.Noise.Signal); !within(r.Noise.Share, share, 0.5) || r.Noise.AtMost != r.Noise.Share {
		t.Errorf("the noise's share is %v to %v, want %v", r.Noise.Share, r.Noise.AtMost, share)
	}
	if !within(r.Noise.SD, sd, 0.4) {
		t.Errorf("the model's noise is %v, want %v", r.Noise.SD, sd)
	}
}

// within reports whether got is want but for a share of it.
func within(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

// Noise that grows with the value, as of a loss in its log, is found, by repeated
// points and by the model's errors, and the output transform evens it out.
func TestNoiseThatGrows(t *testing.T) {
	grows := func(x []float64, rng *rand.Rand) float64 {
		return math.Exp(3*(x[0]+x[1]+x[2]) + 0.3*rng.NormFloat64()) // its log is nearly normal
	}
	space := optimizertest.Cube(t, 3, 0, 1)
	for name, c := range map[string]struct {
		p    *optimizer.Problem
		want diagnosis.Grouping
	}{
		"repeated": {evaluated(t, space, 12, 6, grows), diagnosis.ByReplicates},
		"once":     {evaluated(t, space, 80, 1, grows), diagnosis.ByResiduals},
	} {
		r := diagnose(t, c.p)
		h := r.Heteroscedasticity
		if h.Groups != c.want {
			t.Errorf("%s: groups are %s, want %s", name, h.Groups, c.want)
		}
		if !h.Raw.Differs() || h.Transformed == nil || h.Transformed.Differs() {
			t.Errorf("%s: raw %+v, transformed %+v; want a difference that the transform removes", name, h.Raw, h.Transformed)
		}
		if r.Transform.Effect != diagnosis.Helps || r.Transform.Evidence < 10 {
			t.Errorf("%s: the transform of a lognormal gains %+v", name, r.Transform)
		}
		if !says(r, diagnosis.TopicTransform, "use `transform: true`") {
			t.Errorf("%s: the findings are %+v", name, r.Findings)
		}
	}
}

// Where no point is evaluated twice and the model predicts little, noise is not
// ruled out, however smooth a function the model takes it for.
func TestNoiseWithoutReplicates(t *testing.T) {
	r := diagnose(t, evaluated(t, optimizertest.Cube(t, 3, 0, 1), 40, 1, func(x []float64, rng *rand.Rand) float64 {
		return x[0] + rng.NormFloat64() // 92% of the variance is noise
	}))
	if r.Noise.Replicates != nil || r.Noise.AtMost < 0.7 || !says(r, diagnosis.TopicNoise, "rely on `recommended` rather than `best`") {
		t.Errorf("the noise's share is %v to %v: %+v", r.Noise.Share, r.Noise.AtMost, r.Findings)
	}
	if !says(r, diagnosis.TopicModel, "poorly") {
		t.Errorf("a model that explains %v is described as %q", r.Explained, finding(r, diagnosis.TopicModel).Statement)
	}
	for _, topic := range []diagnosis.Topic{diagnosis.TopicSpread, diagnosis.TopicAcquisition, diagnosis.TopicParameters} {
		if f := finding(r, topic); f.Judged || !strings.Contains(f.Statement, "at least 30% of the variance of left-out trials") {
			t.Errorf("%s is judged by a model that explains %v: %q", topic, r.Explained, f.Statement)
		}
	}
	if r.Importance != nil || r.Conflict != nil || r.Heteroscedasticity != nil {
		t.Error("there are figures of topics that are not judged")
	}
}

// A function whose every change lies near one bound needs warped inputs.
func TestFunctionThatNeedsWarping(t *testing.T) {
	space := optimizertest.Cube(t, 1, 0, 1)
	bent := diagnose(t, evaluated(t, space, 60, 1, func(x []float64, rng *rand.Rand) float64 {
		return math.Sin(14*math.Pow(x[0], 8)) + 0.01*rng.NormFloat64()
	}))
	if bent.Warp.Effect != diagnosis.Helps || bent.Warp.Evidence < 10 || !says(bent, diagnosis.TopicWarp, "use `warp: true`") {
		t.Errorf("warping gains %+v where the function changes only near a bound: %+v", bent.Warp, bent.Findings)
	}
	if bent.Warp.PredictiveAlone < 2*bent.Warp.SEAlone || !(bent.Warp.SEAlone > 0) {
		t.Errorf("without the output transform, warping gains %+v", bent.Warp)
	}
	even := diagnose(t, evaluated(t, space, 60, 1, func(x []float64, rng *rand.Rand) float64 {
		return math.Sin(9*x[0]) + 0.1*rng.NormFloat64()
	}))
	if even.Warp.Effect != diagnosis.Neither || !says(even, diagnosis.TopicWarp, "no clear difference") {
		t.Errorf("warping gains %+v where the function is as rough everywhere: %+v", even.Warp, even.Findings)
	}
}

// The parts of a sum have the variances of their terms, and what is not looked at
// has none.
func TestImportance(t *testing.T) {
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "lr", Type: study.Float, Min: at(1e-4), Max: at(1), Scale: study.Log},
		{Name: "idle", Type: study.Float, Min: at(0), Max: at(1)},
		{Name: "kind", Type: study.Categorical, Values: []any{"a", "b"}},
		{Name: "seed", Type: study.Fixed, Value: int64(1)},
	}, nil)
	p := evaluated(t, space, 64, 1, func(x []float64, _ *rand.Rand) float64 {
		return 2*x[0] + math.Round(x[2]) // of variances 4/12 and 1/4
	})
	p.Direction = study.Maximize
	r := diagnose(t, p)
	want := map[string]float64{"lr": 4.0 / 7, "kind": 3.0 / 7, "idle": 0}
	if len(r.Importance) != 3 || r.Importance[0].Parameter != "lr" || r.Importance[2].Parameter != "idle" {
		t.Fatalf("importances are %+v, want those of lr, kind and idle", r.Importance)
	}
	for _, i := range r.Importance {
		if math.Abs(i.First-want[i.Parameter]) > 0.06 || math.Abs(i.Total-want[i.Parameter]) > 0.06 {
			t.Errorf("the importance of %s is %+v, want %v", i.Parameter, i, want[i.Parameter])
		}
	}
	if !says(r, diagnosis.TopicParameters, "(fix, or widen the range): idle.") || r.Explained < 0.95 {
		t.Errorf("findings %+v of a model that explains %v", r.Findings, r.Explained)
	}
	if r.Noise.Share > 0.02 || r.Noise.Replicates != nil {
		t.Errorf("a function without noise has %+v", r.Noise)
	}
	best := p.Observations[r.Noise.Best-1].Values.First()
	for _, o := range p.Observations {
		if o.Values.First() > best {
			t.Errorf("trial %d has %v, more than the best, %v", o.Trial, o.Values.First(), best)
		}
	}
}

func at(v float64) *float64 { return &v }

func TestConflict(t *testing.T) {
	r := diagnose(t, evaluated(t, optimizertest.Cube(t, 2, 0, 1), 30, 1, func(x []float64, _ *rand.Rand) float64 { return bowl(x) }))
	c := r.Conflict
	if len(c.Pairs) != 3 || c.Points != 1024 || c.Front < 1 || c.Front > c.Points {
		t.Fatalf("the conflict is %+v", c)
	}
	for _, p := range c.Pairs {
		if math.Abs(p.Spearman) > 1 || math.Abs(p.Kendall) > 1 || p.Top < 0 || p.Top > 1 || p.Rank < 1 || p.Rank > c.Points {
			t.Errorf("a pair is %+v", p)
		}
	}
	for _, name := range []string{"EI", "PI", "UCB"} {
		if share, ok := c.Dominated[name]; ok && !(share >= 0 && share <= 1+1e-9) {
			t.Errorf("%v of the best by %s are dominated", share, name)
		}
	}
}

// Where only a corner of many waves was searched, improvement is likely near the known
// minima, and the bound is best far from the corner. Where all of a plain slope is known
// the acquisition functions agree.
func TestConflictIsFound(t *testing.T) {
	slope := func(x []float64, _ *rand.Rand) float64 { return 3*x[0] + x[1] }
	waves := func(x []float64, _ *rand.Rand) float64 { return math.Sin(14*x[0]) * math.Sin(14*x[1]) }
	known := evaluated(t, optimizertest.Cube(t, 2, 0, 1), 60, 1, slope)
	corner := *evaluated(t, optimizertest.Cube(t, 2, 0, 1), 200, 1, waves)
	corner.Observations = slices.DeleteFunc(corner.Observations, func(o optimizer.Observation) bool {
		return o.Point["x1"].(float64) > 0.5 || o.Point["x2"].(float64) > 0.5
	})
	disagree := func(d *diagnosis.Diagnosis) bool { return says(d, diagnosis.TopicAcquisition, "disagree") }
	// least returns the least rank correlation and the least shared part of the best.
	least := func(d *diagnosis.Diagnosis) (rho, top float64) {
		rho, top = 1.0, 1.0
		for _, p := range d.Conflict.Pairs {
			rho, top = min(rho, p.Spearman), min(top, p.Top)
		}
		return rho, top
	}
	agreed, apart := diagnose(t, known), diagnose(t, &corner)
	if rho, top := least(agreed); rho < 0.8 || top < 0.5 || disagree(agreed) {
		t.Errorf("on a known slope the rankings correlate by %v and share %v of the best: %+v", rho, top, agreed.Findings)
	}
	// The rankings correlate all the same: only the best points show the conflict.
	if _, top := least(apart); top >= 0.5 || !disagree(apart) {
		t.Errorf("with only a corner known the rankings share %v of the best: %+v", top, apart.Findings)
	}
}

func TestMixedSpace(t *testing.T) {
	p := evaluated(t, optimizertest.Mixed(t), 40, 1, func(x []float64, rng *rand.Rand) float64 { return x[0] + 0.1*rng.NormFloat64() })
	for i := range 5 {
		p.Observations[i].Outcome = optimizer.OutcomeFailed
	}
	r := diagnose(t, p)
	if r.Completed != 35 || r.LeftOut != 5 || r.Used != 35 {
		t.Errorf("%d completed, %d left out, %d used; want 35, 5, 35", r.Completed, r.LeftOut, r.Used)
	}
	if len(r.Importance) != 9 || r.Importance[0].Parameter != "lr" {
		t.Errorf("importances are %+v, want nine, lr's first", r.Importance)
	}
}

func TestTooLittle(t *testing.T) {
	space := optimizertest.Cube(t, 2, 0, 1)
	value := func(x []float64, _ *rand.Rand) float64 { return x[0] }
	few := evaluated(t, space, 22, 1, value)
	for i := range 3 {
		few.Observations[i].Outcome = optimizer.OutcomeInfeasible
	}
	fixed := evaluated(t, optimizertest.Space(t, []study.Parameter{{Name: "a", Type: study.Fixed, Value: int64(1)}}, nil), 1, 1,
		func([]float64, *rand.Rand) float64 { return 0 })
	for range 20 {
		o := fixed.Observations[0]
		o.Values = []float64{float64(len(fixed.Observations))}
		fixed.Observations = append(fixed.Observations, o)
	}
	for name, c := range map[string]struct {
		p    *optimizer.Problem
		want string
	}{
		"none":   {&optimizer.Problem{Space: space}, "completed trials: 0, at least 20 are needed"},
		"few":    {few, "completed trials: 19, at least 20 are needed"},
		"alike":  {evaluated(t, space, 20, 1, func([]float64, *rand.Rand) float64 { return 0.5 }), "all 20 completed trials have the value 0.5"},
		"a knob": {fixed, "no parameter has more than one value"},
	} {
		if r, _, err := diagnosis.Examine(t.Context(), named("small", nil), c.p, nil); !errors.Is(err, diagnosis.ErrTooLittle) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %q", name, r, err, c.want)
		}
	}
}

// Parameters are ranked from three completed trials for each.
func TestParametersNeedTrials(t *testing.T) {
	space := optimizertest.Cube(t, 8, 0, 1)
	value := func(x []float64, _ *rand.Rand) float64 { return x[0] + 2*x[1] }
	if f := finding(diagnose(t, evaluated(t, space, 23, 1, value)), diagnosis.TopicParameters); f.Judged ||
		!strings.Contains(f.Statement, "24 in all") {
		t.Errorf("after 23 trials the finding about 8 parameters is %+v", f)
	}
	r := diagnose(t, evaluated(t, space, 24, 1, value))
	if f := finding(r, diagnosis.TopicParameters); r.Explained < 0.3 || !f.Judged || !strings.Contains(f.Evidence, "24 trials") {
		t.Errorf("after 24 trials the finding about 8 parameters is %+v", f)
	}
}

// A conditional parameter is judged after 20 trials in which it was active.
func TestRarelyActiveParameter(t *testing.T) {
	space := optimizertest.Space(t, []study.Parameter{
		{Name: "x", Type: study.Float, Min: at(0), Max: at(1)},
		{Name: "kind", Type: study.Categorical, Values: []any{"a", "b", "c", "d", "e"}},
		{Name: "degree", Type: study.Float, Min: at(0), Max: at(1), When: map[string][]any{"kind": {"e"}}},
	}, nil)
	p := evaluated(t, space, 30, 1, func(x []float64, _ *rand.Rand) float64 { return x[0] })
	active := 0
	for _, o := range p.Observations {
		if o.Point["kind"] == "e" {
			active++
		}
	}
	if active == 0 || active >= 20 {
		t.Fatalf("degree is active in %d of 30 trials", active)
	}
	r := diagnose(t, p)
	if want := fmt.Sprintf("active in fewer than 20 trials: degree (%d).", active); !says(r, diagnosis.TopicParameters, want) ||
		says(r, diagnosis.TopicParameters, "range): kind, degree") {
		t.Errorf("the finding is %+v, want %q", finding(r, diagnosis.TopicParameters), want)
	}
}

// However the tests of the spread and the likelihood turn out, there is one finding
// about the output transform, and it follows the likelihood where that is decisive.
func TestOneFindingForTheTransform(t *testing.T) {
	for _, power := range []float64{0.5, 1, 2, 4} {
		for _, sd := range []float64{0.02, 0.1, 0.3} {
			r := diagnose(t, evaluated(t, optimizertest.Cube(t, 2, 0, 1), 24, 1, func(x []float64, rng *rand.Rand) float64 {
				return math.Pow(1+bowl(x), power) * (1 + sd*rng.NormFloat64())
			}))
			f := finding(r, diagnosis.TopicTransform)
			wants := map[diagnosis.Effect]string{diagnosis.Helps: "use `transform: true`", diagnosis.Hurts: "use `transform: false`"}
			if want := wants[r.Transform.Effect]; !strings.Contains(f.Statement, want) {
				t.Errorf("power %v, noise %v: the transform %s, and the finding is %q", power, sd, r.Transform.Effect, f.Statement)
			}
		}
	}
}

// Extreme values still give a diagnosis that is JSON, and one finding a topic.
func TestDegenerate(t *testing.T) {
	space := optimizertest.Cube(t, 2, 0, 1)
	for name, f := range map[string]func([]float64, *rand.Rand) float64{
		"huge":    func(x []float64, _ *rand.Rand) float64 { return 1e300 * x[0] },
		"largest": func(x []float64, _ *rand.Rand) float64 { return math.Copysign(math.MaxFloat64, x[0]-0.5) },
		"tiny":    func(x []float64, _ *rand.Rand) float64 { return 1e-300 * x[0] },
		"outlier": func(x []float64, rng *rand.Rand) float64 { return x[0] + 1e12*math.Floor(rng.Float64()+0.1) },
		"plateau": func(x []float64, _ *rand.Rand) float64 { return math.Max(0, x[0]-0.9) },
		"noise":   func(_ []float64, rng *rand.Rand) float64 { return rng.NormFloat64() },
	} {
		t.Run(name, func(t *testing.T) { diagnose(t, evaluated(t, space, 24, 1, f)) })
	}
	one := evaluated(t, space, 1, 20, func(_ []float64, rng *rand.Rand) float64 { return rng.NormFloat64() })
	if r := diagnose(t, one); r.Noise.Replicates == nil || r.Noise.Replicates.Evaluations != 20 {
		t.Errorf("20 evaluations of one point: %+v", r.Noise)
	}
}

func TestDeterministicAndCancelled(t *testing.T) {
	p := evaluated(t, optimizertest.Cube(t, 2, 0, 1), 20, 1, func(x []float64, rng *rand.Rand) float64 {
		return bowl(x) + 0.1*rng.NormFloat64()
	})
	if diff := cmp.Diff(diagnose(t, p), diagnose(t, p)); diff != "" {
		t.Errorf("two diagnoses of one study differ:\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := diagnosis.Examine(ctx, named("cancelled", nil), p, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled diagnosis: %v", err)
	}
}
