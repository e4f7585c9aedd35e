package katib

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	katibv1beta1 "github.com/fantasia-hpo/fantasia/api/katib/v1beta1"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// experiment is an Experiment as an optimiser sees it.
type experiment struct {
	algorithm
	direction study.Direction
	metric    string
	space     *space.Space
	// parameters are in the Experiment's order.
	parameters             []parameter
	maxTrials, parallelism int
	notes                  []string // what changed its meaning
}

// parameter is a parameter of an experiment. In the space it has another name, since
// Katib accepts more names than a study does.
type parameter struct {
	study.Parameter
	name string
	// texts are the values of a discrete parameter as the Experiment writes them, by value.
	texts map[string]string
}

// parse checks an Experiment. The error names the field, its value and what would be
// accepted, in the words of the Experiment's resource.
func parse(from *katibv1beta1.Experiment) (*experiment, error) {
	spec := from.GetSpec()
	if spec.GetNasConfig() != nil {
		return nil, errors.New("spec.nasConfig: searches of architectures have no counterpart; want spec.parameters")
	}
	e := &experiment{metric: spec.GetObjective().GetObjectiveMetricName(), maxTrials: MaxTrials, parallelism: Parallelism}
	switch kind := spec.GetObjective().GetType(); kind {
	case katibv1beta1.ObjectiveType_MINIMIZE:
		e.direction = study.Minimize
	case katibv1beta1.ObjectiveType_MAXIMIZE:
		e.direction = study.Maximize
	default:
		return nil, fmt.Errorf("spec.objective.type %s: want minimize or maximize", kind)
	}
	if n := spec.GetMaxTrialCount(); n > 0 {
		e.maxTrials = int(n)
	}
	if n := spec.GetParallelTrialCount(); n > 0 {
		e.parallelism = int(n)
	}
	if err := e.parseParameters(spec.GetParameterSpecs().GetParameters()); err != nil {
		return nil, err
	}
	var err error
	if e.algorithm, err = parseAlgorithm(spec.GetAlgorithm()); err != nil {
		return nil, err
	}
	if !e.seeded {
		h := fnv.New64a()
		_, _ = h.Write([]byte(from.GetName())) // never fails
		e.seed = h.Sum64()
	}
	return e, nil
}

// types and distributions are the words of an Experiment's resource.
var (
	types = map[katibv1beta1.ParameterType]string{
		katibv1beta1.ParameterType_DOUBLE: "double", katibv1beta1.ParameterType_INT: "int",
		katibv1beta1.ParameterType_DISCRETE: "discrete", katibv1beta1.ParameterType_CATEGORICAL: "categorical",
	}
	distributions = map[katibv1beta1.Distribution]string{
		katibv1beta1.Distribution_UNIFORM: "uniform", katibv1beta1.Distribution_LOG_UNIFORM: "logUniform",
		katibv1beta1.Distribution_NORMAL: "normal", katibv1beta1.Distribution_LOG_NORMAL: "logNormal",
	}
)

func (e *experiment) parseParameters(from []*katibv1beta1.ParameterSpec) error {
	switch {
	case len(from) == 0:
		return errors.New("spec.parameters is empty: want at least one")
	case len(from) > space.MaxParameters:
		return fmt.Errorf("spec.parameters has %d parameters: want at most %d", len(from), space.MaxParameters)
	}
	seen := map[string]int{}
	compiled := make([]study.Parameter, len(from))
	for i, spec := range from {
		p, err := e.parameter(spec, i)
		if err != nil {
			return fmt.Errorf("spec.parameters[%d] (%s): %w", i, spec.GetName(), err)
		}
		if first, again := seen[p.name]; again {
			return fmt.Errorf("spec.parameters[%d] has the name %q of spec.parameters[%d]: want another", i, p.name, first)
		}
		seen[p.name] = i
		e.parameters, compiled[i] = append(e.parameters, p), p.Parameter
	}
	var err error
	e.space, err = celspace.New(compiled, nil, nil)
	return e.explain(err)
}

func (e *experiment) parameter(spec *katibv1beta1.ParameterSpec, i int) (parameter, error) {
	fs := spec.GetFeasibleSpace()
	from := Parameter{Name: spec.GetName(), Type: types[spec.GetParameterType()], Space: FeasibleSpace{
		Min: fs.GetMin(), Max: fs.GetMax(), Step: fs.GetStep(), List: fs.GetList(), Distribution: distributions[fs.GetDistribution()],
	}}
	p := parameter{name: from.Name, texts: map[string]string{}}
	var err error
	p.Parameter, err = from.Study(func(format string, args ...any) { e.notes = append(e.notes, fmt.Sprintf(format, args...)) })
	if err != nil {
		return p, err
	}
	switch {
	case p.name == "":
		return p, errors.New("the name is empty: want one")
	case len(from.Space.List) == 0 && (p.Type == study.Categorical || p.Type == study.Ordinal):
		return p, errors.New("feasibleSpace.list is empty: want at least one value")
	}
	p.Name = fmt.Sprintf("p%d", i)
	for _, text := range from.Space.List {
		if v, err := strconv.ParseFloat(text, 64); err == nil && from.Type == "discrete" && p.texts[study.Format(v)] == "" {
			p.texts[study.Format(v)] = text
		}
	}
	return p, nil
}

// place is the place of a problem in a space.
var place = regexp.MustCompile(`^parameters\[(\d+)\]\.?(.*)$`)

// explain puts the problems of a space into the words of an Experiment.
func (e *experiment) explain(err error) error {
	problems, ok := errors.AsType[*study.Problems](err)
	if !ok {
		return err
	}
	var lines []string
	for _, p := range problems.List {
		if m := place.FindStringSubmatch(p.Path); m != nil {
			i, _ := strconv.Atoi(m[1]) // it is a number
			p.Path = fmt.Sprintf("spec.parameters[%d] (%s)", i, e.parameters[i].name)
			if m[2] != "" {
				p.Path += ": feasibleSpace." + strings.Replace(m[2], "values", "list", 1)
			}
		}
		lines = append(lines, p.String())
	}
	return errors.New(strings.Join(lines, "; "))
}

// point reads the assignments of a trial; false if they are no point of the space.
func (e *experiment) point(from []*katibv1beta1.ParameterAssignment) (study.Point, bool) {
	texts := make(map[string]string, len(from))
	for _, a := range from {
		texts[a.GetName()] = a.GetValue()
	}
	if len(texts) != len(e.parameters) {
		return nil, false
	}
	raw := make(map[string]any, len(e.parameters))
	for _, p := range e.parameters {
		text, ok := texts[p.name]
		if !ok {
			return nil, false
		}
		raw[p.Name] = text
		if p.numeric() {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, false
			}
			raw[p.Name] = v
		}
	}
	point, err := e.space.Normalize(raw)
	if err != nil || e.space.Check(point) != nil {
		return nil, false
	}
	return point, true
}

// numeric reports whether the values of a parameter are numbers.
func (p *parameter) numeric() bool {
	if p.Type == study.Fixed {
		_, number := p.Value.(float64)
		return number
	}
	return p.Type != study.Categorical
}

// assignments writes a point of the space.
func (e *experiment) assignments(point study.Point) []*katibv1beta1.ParameterAssignment {
	made := make([]*katibv1beta1.ParameterAssignment, len(e.parameters))
	for i, p := range e.parameters {
		text := study.Format(point[p.Name])
		if written, ok := p.texts[text]; ok {
			text = written
		}
		made[i] = &katibv1beta1.ParameterAssignment{Name: p.name, Value: text}
	}
	return made
}

// problem is what an optimiser is asked, and the points that it may not answer.
type problem struct {
	*optimizer.Problem
	// known are the keys of all trials' points.
	known map[string]bool
	// outside counts the trials whose assignments are no point of the space.
	outside int
}

// problem returns the problem for a request after so many suggestions. Trials are numbered
// by their start, and told by their end, so that their order in the request does not count.
func (e *experiment) problem(trials []*katibv1beta1.Trial, suggested int) *problem {
	byStart := slices.SortedStableFunc(slices.Values(trials), func(a, b *katibv1beta1.Trial) int {
		return cmp.Or(compareTimes(a.GetStatus().GetStartTime(), b.GetStatus().GetStartTime()), cmp.Compare(a.GetName(), b.GetName()))
	})
	numbers := make(map[*katibv1beta1.Trial]int, len(trials))
	for i, t := range byStart {
		numbers[t] = i + 1
	}
	byEnd := slices.SortedStableFunc(slices.Values(byStart), func(a, b *katibv1beta1.Trial) int {
		return compareTimes(a.GetStatus().GetCompletionTime(), b.GetStatus().GetCompletionTime())
	})
	p := &problem{known: map[string]bool{}, Problem: &optimizer.Problem{
		Space: e.space, Direction: e.direction, MaxTrials: e.maxTrials, Parallelism: e.parallelism,
		Seed: e.seed, First: max(suggested, len(trials)) + 1,
	}}
	for _, t := range byEnd {
		point, ok := e.point(t.GetSpec().GetParameterAssignments().GetAssignments())
		if !ok {
			p.outside++
			continue
		}
		p.known[e.space.Key(point)] = true
		e.add(p.Problem, t, optimizer.Observation{Trial: numbers[t], Point: point})
	}
	slices.SortFunc(p.Pending, func(a, b optimizer.Pending) int { return a.Trial - b.Trial })
	return p
}

// add adds a trial to a problem.
func (e *experiment) add(p *optimizer.Problem, t *katibv1beta1.Trial, o optimizer.Observation) {
	value, measured := e.value(t)
	switch t.GetStatus().GetCondition() {
	case katibv1beta1.TrialStatus_SUCCEEDED:
		o.Outcome = optimizer.OutcomeFailed
		if measured {
			o.Outcome, o.Values = optimizer.OutcomeCompleted, study.Values{value}
		}
	case katibv1beta1.TrialStatus_EARLYSTOPPED:
		o.Outcome = optimizer.OutcomePruned
		if measured {
			o.Values = study.Values{value}
		}
	case katibv1beta1.TrialStatus_FAILED, katibv1beta1.TrialStatus_METRICSUNAVAILABLE:
		o.Outcome = optimizer.OutcomeFailed
	case katibv1beta1.TrialStatus_KILLED:
		// Somebody ended it: that says nothing of its point.
		p.Taken = append(p.Taken, o)
		return
	default: // created, running, or not known to have ended
		p.Pending = append(p.Pending, optimizer.Pending{Trial: o.Trial, Point: o.Point})
		return
	}
	p.Observations = append(p.Observations, o)
}

// value returns the objective's value of a trial; false if it has none that is a number.
func (e *experiment) value(t *katibv1beta1.Trial) (float64, bool) {
	metric := cmp.Or(t.GetSpec().GetObjective().GetObjectiveMetricName(), e.metric)
	for _, m := range t.GetStatus().GetObservation().GetMetrics() {
		if m.GetName() == metric {
			v, err := strconv.ParseFloat(m.GetValue(), 64)
			return v, err == nil && math.Abs(v) <= math.MaxFloat64
		}
	}
	return 0, false
}

// compareTimes orders times in RFC 3339; what has not happened comes last.
func compareTimes(a, b string) int {
	if (a == "") != (b == "") {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}
