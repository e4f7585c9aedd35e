package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/replay"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// withLevels is a study with a fidelity of three levels, in a continuum or in a space of 50
// configurations.
func withLevels(algorithm string, trials int, finite bool) record.Study {
	spec := definition(algorithm, trials)
	lo, hi, reduction := 1.0, 9.0, 3
	s := &spec.Definition.Spec
	s.Parameters = append(s.Parameters, study.Parameter{Name: "epochs", Type: study.Fidelity, Min: &lo, Max: &hi, Reduction: &reduction})
	for i := range 5 { // trials may be promoted while these wait
		s.Initial = append(s.Initial, map[string]any{"x": 0.1 * float64(i), "y": 0.5, "kind": "b"})
	}
	if finite {
		from, to := 0.0, 4.0
		for i := range 2 {
			s.Parameters[i].Type, s.Parameters[i].Min, s.Parameters[i].Max = study.Int, &from, &to
		}
		s.Initial = []map[string]any{{"x": int64(2), "y": int64(1), "kind": "a"}}
	}
	return spec
}

// ordered returns trials by number.
func ordered(trials []record.Trial) []record.Trial {
	list := slices.Clone(trials)
	slices.SortFunc(list, func(a, b record.Trial) int { return a.Number - b.Number })
	return list
}

// The records of a study with a fidelity give every suggestion and every promotion back,
// whatever happens to it.
func TestEveryPromotionIsMadeAgain(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		trials    int
		seeds     uint64
		finite    bool
	}{
		{"random", 60, 40, false}, {"random", 45, 20, true}, {"tpe", 60, 8, false}, {"tpe", 45, 8, true}, {"bohb", 60, 8, false},
		{"sobol", 60, 4, false}, {"cmaes", 60, 4, false}, {"hebo", 24, 2, false}, {"gp", 24, 2, true},
	} {
		t.Run(fmt.Sprintf("%s %v", c.algorithm, c.finite), func(t *testing.T) {
			t.Parallel()
			suggested, promoted := 0, 0
			for seed := range c.seeds {
				spec, trials := play(t, withLevels(c.algorithm, c.trials, c.finite), seed, seed%2 == 1)
				found := run(t, spec, trials, c.algorithm)
				others, least := 0, 0
				var current []int // the suggestions of the space as it is
				for _, trial := range ordered(trials) {
					switch {
					case trial.Source == optimizer.SourceAdded || trial.Source == optimizer.SourceRequested:
						others++
					case trial.Source != optimizer.SourcePromoted && trial.Ask.Space == spec.Space:
						current = append(current, trial.Number)
					case trial.Source == optimizer.SourcePromoted && (len(current) > 0 || spec.Space == 0):
						least++ // certainly made in that space
					}
				}
				want := replay.Findings{
					Same: len(current), Others: others, Promoted: found.Promoted, Fallbacks: found.Fallbacks,
					Earlier: len(trials) - others - len(current) - found.Promoted,
				}
				suggested, promoted = suggested+want.Same, promoted+want.Promoted
				if fmt.Sprintf("%+v", *found) != fmt.Sprintf("%+v", want) || found.Promoted < least {
					t.Errorf("seed %d: %+v, want %+v and %d promotions: %v", seed, *found, want, least, found.First)
				}
			}
			if suggested < c.trials/2 || promoted < c.trials/10 {
				t.Errorf("only %d suggestions and %d promotions were compared", suggested, promoted)
			}
		})
	}
}

// last returns the last promoted trial of a list by number, as an index.
func last(t *testing.T, trials []record.Trial) int {
	t.Helper()
	for i, trial := range slices.Backward(trials) {
		if trial.Source == optimizer.SourcePromoted {
			return i
		}
	}
	t.Fatal("no trial was promoted")
	return 0
}

// A promotion that the rule does not make is named, and so is a suggestion in its place.
func TestTheFirstWrongPromotionIsNamed(t *testing.T) {
	spec, trials := play(t, withLevels("tpe", 60, false), 2, false)
	trials = ordered(trials)
	at := last(t, trials)
	number, from := trials[at].Number, trials[at].Predecessor
	other := slices.IndexFunc(trials, func(r record.Trial) bool { return r.Rung == trials[at].Rung-1 && r.Number != from })
	suggested := slices.IndexFunc(trials, func(r record.Trial) bool { return r.Number > number-20 && r.Ask != nil && !r.Ask.Fallback })
	for name, c := range map[string]struct {
		change func(list []record.Trial)
		trial  int
		what   string
	}{
		"of another trial": {func(list []record.Trial) { list[at].Predecessor = trials[other].Number }, number,
			fmt.Sprintf("the promotion: recorded of trial %d, now of trial %d", trials[other].Number, from)},
		"of none": {func(list []record.Trial) {
			list[suggested].Source, list[suggested].Predecessor = optimizer.SourcePromoted, 1
		}, trials[suggested].Number, "the promotion: recorded of trial 1, now none"},
		"a suggestion": {func(list []record.Trial) {
			list[at].Source, list[at].Predecessor, list[at].Ask = optimizer.SourceModel, 0, trials[suggested].Ask
		}, number, fmt.Sprintf("the promotion: recorded none, now of trial %d", from)},
		"another point": {func(list []record.Trial) {
			list[at].Point = study.Point{"x": 0.123, "y": list[at].Point["y"], "kind": list[at].Point["kind"], "epochs": list[at].Point["epochs"]}
		}, number, "parameter x: recorded 0.123, now "},
		"another level": {func(list []record.Trial) {
			list[at].Point = study.Point{"x": list[at].Point["x"], "y": list[at].Point["y"], "kind": list[at].Point["kind"], "epochs": int64(1)}
		}, number, "parameter epochs: recorded 1, now "},
		"another reason": {func(list []record.Trial) { list[at].Reasons.Note = "because" }, number, `the reasons: recorded {`},
		"a suggested point": {func(list []record.Trial) {
			list[suggested].Point = study.Point{"x": 0.123, "y": 0.5, "kind": "a", "epochs": int64(1)}
		}, trials[suggested].Number, "parameter x: recorded 0.123, now "},
		"a suggestion at another level": {func(list []record.Trial) {
			p := list[suggested].Point
			list[suggested].Point = study.Point{"x": p["x"], "y": p["y"], "kind": p["kind"], "epochs": int64(3)}
		}, trials[suggested].Number, "parameter epochs: recorded 3, now 1"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := slices.Clone(trials)
			c.change(changed)
			found := run(t, spec, changed, "tpe")
			want := fmt.Sprintf("trial %d differs: %s", c.trial, c.what)
			if found.First == nil || !strings.HasPrefix(found.First.String(), want) {
				t.Errorf("%v, want %s…", found.First, want)
			}
		})
	}
}

// Another value of a trial that decided a promotion is noticed.
func TestAnotherResultIsAnotherPromotion(t *testing.T) {
	spec, trials := play(t, withLevels("random", 60, false), 3, false) // its suggestions do not depend on results
	trials = ordered(trials)
	from := trials[last(t, trials)].Predecessor
	trials[from-1].Values = study.Values{1000}
	found := run(t, spec, trials, "random")
	if found.First == nil || found.First.What != "the promotion" || found.First.Trial <= from {
		t.Errorf("%v, want a promotion that differs", found.First)
	}
}
