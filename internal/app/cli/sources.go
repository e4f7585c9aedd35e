package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
	"github.com/fantasia-hpo/fantasia/study"
)

// leastShared is the least share of a study's parameters that another one must have for it to be suggested.
const leastShared = 0.5

// teacher is a study from which another one could learn.
type teacher struct {
	Study string      `json:"study"`
	State study.State `json:"state"`
	// Shared is how many of the other study's parameters it has, of Parameters.
	Shared     int `json:"shared"`
	Parameters int `json:"parameters"`
	Completed  int `json:"completed"`
}

// suggestSources lists the server's studies from which the study of a file could learn, the best first.
func (a *app) suggestSources(cmd *cobra.Command, r *remote, file string) (shown, error) {
	text, err := a.readStudyFile(cmd, file)
	if err != nil {
		return shown{}, err
	}
	s, err := inject.ParseStudy(file, []byte(text))
	if err != nil {
		return shown{}, err
	}
	if len(s.Spec.Several) > 0 || len(s.Spec.Limits) > 0 {
		return shown{}, usagef(cmd, "%s has several objectives or limits: only a study with one objective and no limits learns", file)
	}
	all, err := r.studies(cmd, nil)
	if err != nil {
		return shown{}, err
	}
	sources := []teacher{}
	for _, other := range all {
		v := view.FromStudy(other.Study)
		if v.Study == s.Metadata.Name || v.Trials.Completed == 0 || len(other.GetObjectives()) > 0 ||
			other.GetObjective().GetMetric() != s.Spec.Objective.Metric {
			continue
		}
		spec, err := r.specOf(cmd, other.GetId())
		if err != nil {
			return shown{}, err
		}
		one := teacher{Study: v.Study, State: v.State, Completed: v.Trials.Completed}
		if one.Shared, one.Parameters = shared(&s.Spec, spec); float64(one.Shared) >= leastShared*float64(max(1, one.Parameters)) {
			sources = append(sources, one)
		}
	}
	slices.SortStableFunc(sources, func(x, y teacher) int {
		return cmp.Or(cmp.Compare(y.Shared, x.Shared), cmp.Compare(y.Completed, x.Completed), cmp.Compare(x.Study, y.Study))
	})
	return shown{sources, func(w screen) error { return sourcesText(w, s.Spec.Objective.Metric, sources) }}, nil
}

// shared returns how many of a study's parameters another one has by name and kind, and how many there are. Fixed ones
// do not count.
func shared(spec, other *study.Spec) (common, all int) {
	for i := range spec.Parameters {
		p := &spec.Parameters[i]
		if p.Type == study.Fixed {
			continue
		}
		all++
		if slices.ContainsFunc(other.Parameters, func(q study.Parameter) bool { return q.Name == p.Name && alike(p, &q) }) {
			common++
		}
	}
	return common, all
}

// alike reports whether the values of one parameter have a place among those of another one.
func alike(p, q *study.Parameter) bool {
	number := func(t study.Type) bool { return t == study.Float || t == study.Int }
	switch {
	case number(p.Type) || number(q.Type):
		return number(p.Type) && number(q.Type)
	case q.Type == study.Fixed || p.Type == study.Fidelity || q.Type == study.Fidelity:
		return p.Type == q.Type
	default:
		return slices.ContainsFunc(q.Listed(), func(choice any) bool { _, ok := p.Index(choice); return ok })
	}
}

func sourcesText(w screen, metric string, sources []teacher) error {
	if len(sources) == 0 {
		return say(w, "no study of the metric %s that has completed a trial has half of the parameters", metric)
	}
	rows := make([][]string, len(sources))
	for i, s := range sources {
		rows[i] = []string{s.Study, string(s.State), fmt.Sprintf("%d of %d", s.Shared, s.Parameters), fmt.Sprint(s.Completed)}
	}
	columns := []layout.Column{{Head: "STUDY", Least: 8}, {Head: "STATE", Rank: 1}, {Head: "PARAMETERS"}, {Head: "COMPLETED"}}
	if err := w.table(columns, rows); err != nil {
		return err
	}
	text := "\nto learn from them, add to the study file:\n  learnFrom:"
	for _, s := range sources[:min(len(sources), study.MaxEarlier)] {
		text += fmt.Sprintf("\n    - {study: %s}", s.Study)
	}
	return say(w, "%s", text)
}
