package migrate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// OptunaOptions select what to import from a storage.
type OptunaOptions struct {
	// Python is the interpreter with Optuna that reads databases. If it is empty, it is that of the
	// environment that is active, by VIRTUAL_ENV or CONDA_PREFIX, or else python3 or python on the PATH.
	// Journals need none.
	Python string
	// Study is the name of the study; it may be empty if there is only one.
	Study string
	// Initial is the number of best trials to evaluate again first, 0 or more. OptunaTrials does not
	// look at it.
	Initial int
}

// optunaMetric is the name given to the objective, which has none in Optuna. Several are called
// by their columns in Optuna's data frames.
const optunaMetric = "value"

// Optuna converts a study in a storage of Optuna 3 to 5: the search space that the trials
// used, and the best points to start with. source is the path of a file of SQLite or of a journal,
// or the URL of a database, as Optuna has it. Databases are read by a Python with Optuna, which neither
// changes nor makes them. The error wraps ErrSource if the source is at fault, and not if there is no such
// Python or a server cannot be reached. It lists the existing studies if none or several match, and does not
// hold the URL's password.
func Optuna(ctx context.Context, source string, o OptunaOptions) (*Result, error) {
	stored, err := readOptuna(ctx, source, o)
	if err != nil {
		return nil, err
	}
	return stored.convert(o.Initial)
}

// convert converts a study, with some of the best points.
func (s *optunaStudy) convert(initial int) (_ *Result, err error) {
	made := &study.Study{APIVersion: study.APIVersion, Kind: study.Kind, Metadata: study.Metadata{Name: label(s.name)}}
	if made.Spec.Objective = s.objectives[0]; len(s.objectives) > 1 {
		made.Spec.Objective, made.Spec.Several = study.Objective{}, s.objectives
	}
	made.Spec.Limits = s.limits()
	r := &Result{}
	made.Spec.Attributes = s.studyAttributes(r)
	if made.Spec.Parameters, err = spaceOf(r, s); err != nil {
		return nil, err
	}
	made.Spec.Initial = bestPoints(r, s, made.Spec.Parameters, initial)
	made.Spec.Budget.MaxTrials = max(len(s.trials), len(made.Spec.Initial), 1)
	made.Spec.Trial.Command = []string{"python", "train.py", "${args}"}
	s.noteProgram(r)
	s.noteLeftOut(r)
	return r, r.render(made)
}

// label converts any name to a study's name, a DNS label.
func label(name string) string {
	made := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
	if made == "" {
		return "imported"
	}
	return strings.TrimRight(made[:min(len(made), 63)], "-")
}

// optunaStudy is a study as a storage has it.
type optunaStudy struct {
	name       string
	objectives []study.Objective
	trials     []*optunaTrial // by number
	// attributes are the user attributes, as unmarshalPython decodes them.
	attributes map[string]any
	// constraints are the metrics of the constraints that completed trials have.
	constraints []string
}

// optunaTrial is a trial with its parameters.
type optunaTrial struct {
	number int
	state  string       // COMPLETE, PRUNED, FAIL, RUNNING or WAITING
	values study.Values // fewer than objectives if it has none; not always finite
	// parameters are in the order in which the trial asked for them.
	parameters []optunaParameter
	// attributes are the user attributes that are finite numbers.
	attributes map[string]float64
	// constraints are the values of the trial's constraints by their metrics, constrained the metrics in
	// the order in which they were set. NaN is for a value that does not count as met.
	constraints map[string]float64
	constrained []string
}

// attributePrefix begins the names of the metrics that user attributes become. Optuna's data
// frames have columns of these names.
const attributePrefix = "user_attrs_"

// maxAttributes is the largest number of user attributes of a trial that become metrics, those
// that come first in the order of their names. maxAttributeName is the longest name in bytes.
const maxAttributes, maxAttributeName = 128, 200

// attribute notes a user attribute, if it is a finite number; if it is not, none has that name.
func (t *optunaTrial) attribute(name string, value any) {
	delete(t.attributes, name)
	n, ok := value.(json.Number)
	f, err := n.Float64()
	if !ok || err != nil || math.IsInf(f, 0) || name == "" || len(name) > maxAttributeName {
		return
	}
	if t.attributes == nil {
		t.attributes = map[string]float64{}
	}
	t.attributes[name] = f
}

// metrics returns the trial's user attributes as metrics.
func (t *optunaTrial) metrics() map[string]float64 {
	if len(t.attributes) == 0 {
		return nil
	}
	made := map[string]float64{}
	names := slices.Sorted(maps.Keys(t.attributes))
	for _, name := range names[:min(len(names), maxAttributes)] {
		made[attributePrefix+name] = t.attributes[name]
	}
	return made
}

// optunaParameter is a parameter of a trial.
type optunaParameter struct {
	name string
	// value is the index of a choice for a categorical.
	value float64
	*distribution
}

// problem says why a trial has no values to learn from; it is empty if it has all of them.
func (s *optunaStudy) problem(t *optunaTrial) string {
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	switch {
	case t.state != "COMPLETE":
		return fmt.Sprintf("its state is %s: only completed trials have a value", t.state)
	case len(t.values) != len(s.objectives):
		return "it completed without a value"
	case slices.ContainsFunc(t.values, infinite):
		return "its value is infinite or NaN: want a finite number"
	}
	return ""
}

// point returns a trial's parameters by their names in a study.
func (t *optunaTrial) point() map[string]any {
	point := make(map[string]any, len(t.parameters))
	for _, p := range t.parameters {
		point[ParameterName(p.name)] = p.distribution.value(p.value)
	}
	return point
}

// noteLeftOut counts the trials that import-trials will leave out, by the reason.
func (s *optunaStudy) noteLeftOut(r *Result) {
	why := map[string]int{}
	for _, t := range s.trials {
		if problem := s.problem(t); problem != "" {
			why[problem]++
		}
	}
	for _, problem := range slices.Sorted(maps.Keys(why)) {
		r.note("trials without a result: %d of %d (%s)", why[problem], len(s.trials), problem)
	}
}

// noteProgram says what the program has to report.
func (s *optunaStudy) noteProgram(r *Result) {
	names := each.Of(study.MetricNames(s.objectives), strconv.Quote)
	one := "its objective"
	if len(names) > 1 {
		one = "its objectives"
	}
	text := fmt.Sprintf("%s as %s", one, strings.Join(names, ", "))
	if len(s.constraints) > 0 {
		text += ", and the values of its constraints as " + each.Join(s.constraints, ", ", strconv.Quote)
	}
	r.note("write your program into spec.trial.command: Optuna keeps none. It reports %s", text)
}

// best returns the completed trials, at least n if there are as many: the best first. Of several
// objectives, those that no others dominate come first, then those that only these dominate, and so on.
// Trials that do not meet all constraints come after all others, the nearest first.
func (s *optunaStudy) best(n int) []*optunaTrial {
	left := slices.DeleteFunc(slices.Clone(s.trials), func(t *optunaTrial) bool { return s.problem(t) != "" })
	d := s.objectives[0].Direction
	slices.SortStableFunc(left, func(a, b *optunaTrial) int { return cmp.Compare(d.Cost(a.values[0]), d.Cost(b.values[0])) })
	outside := slices.Clone(left)
	left = slices.DeleteFunc(left, func(t *optunaTrial) bool { return s.violation(t) > 0 })
	outside = slices.DeleteFunc(outside, func(t *optunaTrial) bool { return s.violation(t) == 0 })
	slices.SortStableFunc(outside, func(a, b *optunaTrial) int { return cmp.Compare(s.violation(a), s.violation(b)) })
	if len(s.objectives) == 1 {
		return append(left, outside...)
	}
	var ranked []*optunaTrial
	for len(left) > 0 && len(ranked) < n {
		best := front.Of(s.objectives, each.Of(left, func(t *optunaTrial) study.Values { return t.values }))
		for _, i := range best {
			ranked = append(ranked, left[i])
		}
		for _, i := range slices.Backward(best) {
			left = slices.Delete(left, i, i+1)
		}
	}
	return append(ranked, outside...)
}

// bestPoints returns the points of the n best trials that belong to the space.
func bestPoints(r *Result, s *optunaStudy, params []study.Parameter, n int) []map[string]any {
	var points []map[string]any
	for _, t := range s.best(n) {
		if len(points) == n {
			break
		}
		point := t.point()
		if _, err := celspace.New(params, nil, []map[string]any{point}); err != nil {
			r.note("trial %d, one of the best, was left out: %s", t.number, problemsOf(err))
			n--
			continue
		}
		points = append(points, point)
	}
	return points
}

// problemsOf returns the messages of an error of a space, without the places in a file.
func problemsOf(err error) string {
	problems, ok := errors.AsType[*study.Problems](err)
	if !ok {
		return err.Error()
	}
	return each.Join(problems.List, "; ", func(p study.Problem) string { return p.Message })
}

// studyAttributes returns the user attributes of a study as spec.attributes. Those that are no values of
// JSON or do not fit are left out, and a note names them.
func (s *optunaStudy) studyAttributes(r *Result) map[string]any {
	made := map[string]any{}
	var leftOut []string
	bytes := len("{}")
	for _, name := range slices.Sorted(maps.Keys(s.attributes)) {
		var plain map[string]any // with float64 for numbers, as others decode JSON
		text, err := json.Marshal(map[string]any{name: s.attributes[name]})
		if err == nil && len(text) <= study.MaxAttributes {
			err = json.Unmarshal(text, &plain)
		}
		if more := len(text) - len("{}") + min(len(made), len(",")); err != nil || bytes+more > study.MaxAttributes {
			leftOut = append(leftOut, name)
		} else if plain[name] != nil {
			made[name] = plain[name]
			bytes += more
		}
	}
	if len(leftOut) > 0 {
		names := each.Of(leftOut[:min(len(leftOut), 5)], strconv.Quote)
		if len(leftOut) > len(names) {
			names = append(names, "…")
		}
		r.note("user attributes of the study left out: %d of %d (%s): want values of JSON that have at most %d bytes together",
			len(leftOut), len(s.attributes), strings.Join(names, ", "), study.MaxAttributes)
	}
	if len(made) == 0 {
		return nil
	}
	return made
}
