package diagnosis_test

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// The finding says what 30 more trials are expected to gain and what at most. An algorithm without a model, and a study
// whose trials differ in their fidelity, have none.
func TestMoreTrials(t *testing.T) {
	p := evaluated(t, optimizertest.Cube(t, 2, 0, 1), 40, 1, func(x []float64, _ *rand.Rand) float64 { return bowl(x) })
	r := diagnose(t, p)
	if r.More == nil || !(r.More.Expected > 0) || r.More.Most < r.More.Expected {
		t.Fatalf("more trials gain %+v", r.More)
	}
	want := regexp.MustCompile(`^30 more trials are expected to gain \S+ and, in nine of ten cases, at most \S+\.$`)
	if f := finding(r, diagnosis.TopicMore); !f.Judged || !want.MatchString(f.Statement) {
		t.Errorf("the finding is %+v", f)
	}
	for i := range p.Observations {
		p.Observations[i].Seconds, p.Observations[i].Cost = 120, 0.5
	}
	want = regexp.MustCompile(`at most \S+\. They take about 1h0m0s together: at most \S+ an hour\. ` +
		`They cost about 15 together: at most \S+ for a unit of cost\.$`)
	if f := finding(diagnose(t, p), diagnosis.TopicMore); !want.MatchString(f.Statement) {
		t.Errorf("the finding is %+v", f)
	}
	blind, fidelity := named("blind", nil), named("fidelity", nil)
	blind.Spec.Algorithm.Name = "random"
	fidelity.Spec.Parameters = []study.Parameter{{Name: "epochs", Type: study.Fidelity}}
	for _, s := range []*study.Study{blind, fidelity} {
		if r, _, err := diagnosis.Examine(t.Context(), s, p, nil); err != nil || r.More != nil {
			t.Errorf("%s: more trials gain %+v, %v", s.Metadata.Name, r.More, err)
		}
	}
}
