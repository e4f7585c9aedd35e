package registry

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestNames(t *testing.T) {
	if diff := cmp.Diff([]string{"hebo", "gp", "random", "sobol"}, Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if Names()[0] != Default {
		t.Errorf("the default %s is not the first", Default)
	}
}

// Every entry can be made with its defaults written out, works, and is
// documented.
func TestEntries(t *testing.T) {
	for _, e := range Entries() {
		settings := map[string]any{}
		for _, s := range e.Settings {
			settings[s.Name] = s.Default
			if s.Doc == "" || !strings.HasSuffix(s.Doc, ".") {
				t.Errorf("%s: setting %s is documented as %q, want a sentence", e.Name, s.Name, s.Doc)
			}
		}
		if !strings.HasSuffix(e.Description, ".") {
			t.Errorf("%s is described as %q, want a sentence", e.Name, e.Description)
		}
		o, err := New(e.Name, settings)
		if err != nil {
			t.Errorf("%s with its defaults: %v", e.Name, err)
			continue
		}
		optimizertest.NewSession(t, o, optimizertest.Mixed(t), 1).Ask(2)
	}
}

func TestEmptyNameIsTheDefault(t *testing.T) {
	// draws is no setting of random and sobol.
	if err := Check("", map[string]any{"draws": 8}); err != nil {
		t.Error(err)
	}
}

// What a study says of noise decides whether its best value is recommended.
func TestRecommendReadsTheSettings(t *testing.T) {
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize, MaxTrials: 40}
	for i := range 40 {
		x := float64(i) / 39
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": x}, Outcome: optimizer.OutcomeCompleted, Values: []float64{(x - 0.3) * (x - 0.3)},
		})
	}
	p.Observations[30].Values = []float64{-0.01}
	for _, c := range []struct {
		algorithm study.Algorithm
		best      bool
	}{
		{study.Algorithm{}, false},
		{study.Algorithm{Name: "gp", Settings: map[string]any{"noise": "no"}}, true},
		{study.Algorithm{Name: "random"}, false},
	} {
		got, err := Recommend(t.Context(), c.algorithm, p, nil)
		if err != nil || got == nil || (got.Trial == 31) != c.best {
			t.Errorf("%+v: recommended %+v, %v; trial 31 is the best: %t", c.algorithm, got, err, c.best)
		}
	}
	if _, err := Recommend(t.Context(), study.Algorithm{Name: "gp", Settings: map[string]any{"noise": "loud"}}, p, nil); err == nil {
		t.Error("noise: loud is accepted")
	}
	if _, err := Recommend(t.Context(), study.Algorithm{Name: "gpp"}, p, nil); err == nil {
		t.Error("algorithm gpp is accepted")
	}
}

func TestErrors(t *testing.T) {
	err := Check("gpp", nil)
	if _, ok := errors.AsType[*UnknownError](err); !ok || err.Error() != `algorithm "gpp" is unknown: want one of hebo, gp, random, sobol` {
		t.Errorf("an unknown name: %v", err)
	}
	err = Check("random", map[string]any{"draws": 8})
	want := `algorithm random: setting "draws" is unknown: there are no settings`
	if _, ok := errors.AsType[*setting.Error](err); !ok || err.Error() != want {
		t.Errorf("a setting of another algorithm: %v, want %s", err, want)
	}
}
