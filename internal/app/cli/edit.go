package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/study"
	studyfile "github.com/fantasia-hpo/fantasia/study/file"
)

// changes are what `study edit` changes of a study.
type changes struct {
	maxTrials, parallelism int
	maxDuration            time.Duration
	maxCost, stopGain      float64
	stopGainPer            string
	goal                   float64
	ranges, values         []string
	remarks
}

func newStudyEditCommand(a *app, r *remote) *cobra.Command {
	e := &changes{}
	c := &cobra.Command{
		Use:   "edit STUDY",
		Short: "Change the budget, the goal, the space, the labels or the note of a study",
		Long: `Changes what the flags name, and leaves the rest as it is. A larger budget continues a
study that had completed.

Another range or other values make a new version of the search space. Trials whose
point is not in it stay in lists and exports, but the optimiser no longer learns from
them, and they are neither best nor recommended. Those that run are finished and count.
Initial points that do not fit are left out.`,
		Example: `  fantasia study edit digits --max-trials 128
  fantasia study edit digits --max-duration 8h --max-cost 250
  fantasia study edit digits --range learning_rate=1e-6:1e-2 --range hidden=:512
  fantasia study edit digits --values solver=adam,sgd,rmsprop
  fantasia study edit digits --label team=vision --note "second try, more data"`,
		Args: cobra.ExactArgs(1),
	}
	f := c.Flags()
	f.IntVar(&e.maxTrials, "max-trials", 0, "how many trials to evaluate in all (spec.budget.maxTrials)")
	f.DurationVar(&e.maxDuration, "max-duration", 0, "how long the study may run in all, such as 8h (spec.budget.maxDuration)")
	f.Float64Var(&e.maxCost, "max-cost", 0, "what all trials together may cost (spec.budget.maxCost)")
	f.Float64Var(&e.stopGain, "stop-gain", 0, "end the study once 30 more trials are not expected to gain more; 0: never "+
		"(spec.budget.stopWhen.gain)")
	f.StringVar(&e.stopGainPer, "stop-gain-per", "", "what that gain is for: trials (all 30), hour (of trials) or cost (a unit of spec.cost) "+
		"(spec.budget.stopWhen.per)")
	f.IntVar(&e.parallelism, "parallelism", 0, "how many trials may run at once (spec.parallelism)")
	f.Float64Var(&e.goal, "goal", 0, "the value that ends the study (spec.objective.goal) or, of several objectives, the hypervolume "+
		"(spec.goal.hypervolume)")
	f.StringArrayVar(&e.ranges, "range", nil, "`NAME=MIN:MAX` of a float or an int; without MIN or MAX, that end stays. May be given "+
		"several times")
	f.StringArrayVar(&e.values, "values", nil, "`NAME=VALUE,VALUE,…` of a categorical or an ordinal: all its values. May be given several "+
		"times")
	e.flags(c)
	return a.onStudy(r, c, func(cmd *cobra.Command, name string, args []string) (shown, error) {
		known := []string{"max-trials", "max-duration", "max-cost", "stop-gain", "stop-gain-per", "parallelism", "goal", "range", "values",
			"label", "note"}
		if !slices.ContainsFunc(known, cmd.Flags().Changed) {
			last := len(known) - 1
			return shown{}, usagef(cmd, "nothing to change: give --%s or --%s", strings.Join(known[:last], ", --"), known[last])
		}
		set, remove, err := e.parse()
		if err != nil {
			return shown{}, usagef(cmd, "%v", err)
		}
		before, err := r.get(cmd, args[0])
		if err != nil {
			return shown{}, err
		}
		s, err := studyfile.Parse([]byte(before.GetStudyFile()))
		if err != nil {
			return shown{}, fmt.Errorf("read the file of %s: %w", name, err)
		}
		if err := e.apply(cmd, s); err != nil {
			return shown{}, err
		}
		relabel(&s.Metadata, set, remove)
		file, err := json.Marshal(s)
		if err != nil {
			return shown{}, fmt.Errorf("write the file of %s: %w", name, err)
		}
		resp, err := ask(cmd, r, service.UpdateStudy, &fantasiav1.UpdateStudyRequest{Name: "studies/" + before.GetId(), StudyFile: string(file)})
		text, version := "study "+s.Metadata.Name+" edited", resp.GetStudy().GetSpaceVersion()
		if version != before.GetSpaceVersion() {
			text += fmt.Sprintf(": version %d of its space", version)
		}
		return line(view.FromStudy(resp.GetStudy()), "%s", text), err
	})
}

// apply makes the changes whose flags are set, but for the labels.
func (e *changes) apply(cmd *cobra.Command, s *study.Study) error {
	budget := &s.Spec.Budget
	for _, change := range []struct {
		flag string
		make func()
	}{
		{"max-trials", func() { budget.MaxTrials = e.maxTrials }},
		{"max-duration", func() { budget.MaxDuration = study.Duration(e.maxDuration) }},
		{"max-cost", func() { budget.MaxCost = e.maxCost }},
		{"stop-gain", func() {
			if budget.StopWhen.Gain = e.stopGain; e.stopGain == 0 {
				budget.StopWhen = study.StopWhen{}
			}
		}},
		{"stop-gain-per", func() { budget.StopWhen.Per = study.Per(e.stopGainPer) }},
		{"parallelism", func() { s.Spec.Parallelism = e.parallelism }},
		{"goal", func() {
			if len(s.Spec.Several) > 0 {
				s.Spec.Goal = &study.FrontGoal{Hypervolume: e.goal}
			} else {
				s.Spec.Objective.Goal = &e.goal
			}
		}},
		{"note", func() { s.Spec.Note = e.note }},
	} {
		if cmd.Flags().Changed(change.flag) {
			change.make()
		}
	}
	for _, text := range e.ranges {
		if err := editRange(&s.Spec, text); err != nil {
			return usagef(cmd, "--range %s: %v", text, err)
		}
	}
	for _, text := range e.values {
		if err := editValues(&s.Spec, text); err != nil {
			return usagef(cmd, "--values %s: %v", text, err)
		}
	}
	s.Spec.Initial = slices.DeleteFunc(s.Spec.Initial, func(p map[string]any) bool { return outside(&s.Spec, p) })
	return nil
}

// relabel removes and sets labels.
func relabel(m *study.Metadata, set map[string]string, remove []string) {
	for _, key := range remove {
		delete(m.Labels, key)
	}
	if m.Labels == nil {
		m.Labels = set
		return
	}
	maps.Copy(m.Labels, set)
}

// outside reports whether an initial point has a value that its parameter does not have.
func outside(spec *study.Spec, point map[string]any) bool {
	return slices.ContainsFunc(spec.Parameters, func(p study.Parameter) bool {
		value, ok := point[p.Name]
		if !ok {
			return false
		}
		_, err := p.Convert(value)
		return err != nil
	})
}

// parameterOf returns the parameter that a flag names, and what the flag says of it.
func parameterOf(spec *study.Spec, text string, types ...study.Type) (*study.Parameter, string, error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return nil, "", fmt.Errorf("want NAME=…, with the name of a parameter")
	}
	i := slices.IndexFunc(spec.Parameters, func(p study.Parameter) bool { return p.Name == name })
	if i < 0 {
		return nil, "", fmt.Errorf("there is no parameter %q: want one of %s", name, strings.Join(study.Names(spec.Parameters), ", "))
	}
	p := &spec.Parameters[i]
	if !slices.Contains(types, p.Type) {
		return nil, "", fmt.Errorf("%s is of type %s: want a parameter of type %s or %s", name, p.Type, types[0], types[1])
	}
	return p, rest, nil
}

// editRange sets the range of a float or an int.
func editRange(spec *study.Spec, text string) error {
	p, rest, err := parameterOf(spec, text, study.Float, study.Int)
	if err != nil {
		return err
	}
	low, high, ok := strings.Cut(rest, ":")
	if !ok || low == "" && high == "" {
		return fmt.Errorf("want MIN:MAX, MIN: or :MAX")
	}
	for _, end := range []struct {
		text string
		into **float64
	}{{low, &p.Min}, {high, &p.Max}} {
		if end.text == "" {
			continue
		}
		x, err := strconv.ParseFloat(end.text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", end.text)
		}
		*end.into = &x
	}
	return nil
}

// editValues sets the values of a categorical or an ordinal. A value that the parameter has
// keeps its type. New ones are read as numbers and booleans only beside such.
func editValues(spec *study.Spec, text string) error {
	p, rest, err := parameterOf(spec, text, study.Categorical, study.Ordinal)
	if err != nil {
		return err
	}
	texts := !slices.ContainsFunc(p.Values, func(v any) bool { _, ok := v.(string); return !ok })
	var values []any
	for item := range strings.SplitSeq(rest, ",") {
		if i := slices.IndexFunc(p.Values, func(v any) bool { return study.Format(v) == item }); i >= 0 {
			values = append(values, p.Values[i])
			continue
		}
		var v any
		if texts || json.Unmarshal([]byte(item), &v) != nil {
			v = item
		}
		if _, ok := v.(float64); ok { // not all whole numbers are a float64
			v = json.Number(strings.TrimSpace(item))
		}
		value, ok := study.Scalar(v)
		if !ok {
			return fmt.Errorf("%s is not a string, a number or a boolean", item)
		}
		values = append(values, value)
	}
	p.Values = values
	return nil
}
