package registry

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/optimizer/papers"
	"github.com/fantasia-hpo/fantasia/optimizer/registry/lean"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestNames(t *testing.T) {
	if diff := cmp.Diff([]string{"hebo", "gp", "tpe", "bohb", "cmaes", "forest", "turbo", "nsga2", "random", "sobol", "grid", "hebo-paper",
		"lgp", "uhe", "pt"}, Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if Names()[0] != Default {
		t.Errorf("the default %s is not the first", Default)
	}
	if diff := cmp.Diff(lean.Papers(), papers.Algorithms().Names()); diff != "" {
		t.Errorf("lean names other optimisers of papers than there are (-lean +papers):\n%s", diff)
	}
}

// Each entry can be created with its defaults written out, works, and is documented.
func TestEntries(t *testing.T) {
	for _, e := range Entries() {
		settings := map[string]any{}
		for _, s := range e.Settings {
			settings[s.Name] = s.Default
			if s.Doc == "" || !strings.HasSuffix(s.Doc, ".") || utf8.RuneCountInString(s.Doc) >= 80 {
				t.Errorf("%s: setting %s is documented as %q, want a sentence under 80 characters", e.Name, s.Name, s.Doc)
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
	// random, sobol and grid have no setting noise.
	if err := Check("", map[string]any{"noise": "no"}); err != nil {
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
	} {
		o, err := New(c.algorithm.Name, c.algorithm.Settings)
		if err != nil {
			t.Fatal(err)
		}
		got, err := optimizer.Recommend(t.Context(), o, p, nil)
		if err != nil || got == nil || (got.Trial == 31) != c.best {
			t.Errorf("%+v: recommended %+v, %v; trial 31 is the best: %t", c.algorithm, got, err, c.best)
		}
	}
}

// Optimisers of several objectives suggest points for them, and recommend none.
func TestSeveralObjectives(t *testing.T) {
	p := &optimizer.Problem{
		Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize, MaxTrials: 40, First: 2,
		Objectives: []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Maximize}},
		Observations: []optimizer.Observation{{Trial: 1, Point: study.Point{"x1": 0.5}, Outcome: optimizer.OutcomeCompleted,
			Values: study.Values{2, 3}}},
	}
	if diff := cmp.Diff([]string{"hebo", "gp", "tpe", "nsga2", "random", "sobol"}, Several()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, name := range Several() {
		o, err := New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want *optimizer.Recommendation
		if !slices.Contains([]string{"random", "sobol"}, name) {
			want = &optimizer.Recommendation{Trial: 1, Mean: 2, Point: p.Observations[0].Point,
				Front: []optimizer.Expected{{Trial: 1, Means: []float64{2, 3}, SDs: []float64{0, 0}}}}
		}
		got, err := optimizer.Recommend(t.Context(), o, p, nil)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s recommends of two objectives (-want +got, %v):\n%s", name, err, diff)
		}
		batch, _, err := o.Suggest(t.Context(), p, nil, 2, optimizer.NewRand(1, 2))
		if err != nil || len(batch) != 2 {
			t.Errorf("%s suggests %v (%v), want two points", name, batch, err)
		}
	}
}

// The optimisers that ignore results recommend nothing; the others do as soon as an
// evaluation has completed.
func TestWhoRecommends(t *testing.T) {
	p := &optimizer.Problem{
		Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize, MaxTrials: 40,
		Observations: []optimizer.Observation{{Trial: 1, Point: study.Point{"x1": 0.5}, Outcome: optimizer.OutcomeCompleted,
			Values: study.Values{2}}},
	}
	want := map[string]*optimizer.Recommendation{
		"hebo": {Trial: 1, Mean: 2, Point: p.Observations[0].Point}, "gp": {Trial: 1, Mean: 2, Point: p.Observations[0].Point},
		"hebo-paper": {Trial: 1, Mean: 2, Point: p.Observations[0].Point},
		"bohb":       {Trial: 1, Mean: 2, Point: p.Observations[0].Point}, "tpe": {Trial: 1, Mean: 2, Point: p.Observations[0].Point},
		"cmaes":  {Trial: 1, Mean: 2, Point: p.Observations[0].Point},
		"forest": {Trial: 1, Mean: 2, Point: p.Observations[0].Point}, "lgp": {Trial: 1, Mean: 2, Point: p.Observations[0].Point},
		"turbo": {Trial: 1, Mean: 2, Point: p.Observations[0].Point},
		"uhe":   {Trial: 1, Mean: 2, Point: p.Observations[0].Point}, "pt": {Trial: 1, Mean: 2, Point: p.Observations[0].Point},
		"nsga2": {Trial: 1, Mean: 2, Point: p.Observations[0].Point}, "random": nil, "sobol": nil, "grid": nil,
	}
	got := map[string]*optimizer.Recommendation{}
	for _, name := range Names() {
		o, err := New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got[name], err = optimizer.Recommend(t.Context(), o, p, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recommended (-want +got):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	err := Check("gpp", nil)
	if _, ok := errors.AsType[*UnknownError](err); !ok ||
		err.Error() != `unknown algorithm "gpp": want one of hebo, gp, tpe, bohb, cmaes, forest, turbo, nsga2, random, sobol, grid, hebo-paper, lgp, uhe, pt` {
		t.Errorf("an unknown name: %v", err)
	}
	err = Check("random", map[string]any{"draws": 8})
	want := `algorithm random: unknown setting "draws": this algorithm has no settings`
	if _, ok := errors.AsType[*setting.Error](err); !ok || err.Error() != want {
		t.Errorf("a setting of another algorithm: %v, want %s", err, want)
	}
}

// TestBlind holds that those optimisers are marked as blind that ignore results.
func TestBlind(t *testing.T) {
	for name, want := range map[string]bool{"hebo": false, "gp": false, "hebo-paper": false, "tpe": false, "bohb": false, "cmaes": false,
		"forest": false, "turbo": false, "lgp": false, "uhe": false, "pt": false, "random": true, "sobol": true, "grid": true} {
		o, err := New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, blind := o.(optimizer.Blind); blind != want {
			t.Errorf("%s is marked as blind: %t, want %t", name, blind, want)
		}
	}
}

// TestForecast holds that those optimisers can tell what more trials gain of which the list says so.
func TestForecast(t *testing.T) {
	names := Forecast()
	if !slices.Equal(names, []string{"hebo", "gp"}) {
		t.Errorf("%v forecast what more trials gain, want hebo and gp", names)
	}
	for _, name := range names {
		o, err := New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := o.(optimizer.Forecaster); !ok {
			t.Errorf("%s is no Forecaster", name)
		}
	}
}
