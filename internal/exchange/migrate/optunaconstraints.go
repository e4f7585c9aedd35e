package migrate

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// # Constraints
//
// A trial of Optuna meets a constraint whose value is 0 or less. The values are system attributes of
// the trial: those of a constraints_func are a list, and since Optuna 5 trial.set_constraint makes an
// attribute of each. In a study they are metrics that limits bound.

// constraintsKey is the attribute that lists constraints, and what the metrics of constraints begin
// with. The names of the attributes of single ones begin with constraintPrefix.
const constraintsKey, constraintPrefix = "constraints", "constraints:"

// ConstraintMetric returns the metric that a study has for a constraint of Optuna. The Python client
// has the same function; testdata/constraints.json is the test of both.
func ConstraintMetric(name string) string {
	whole := constraintsKey + "_" + name
	blank := func(c rune) bool { return c <= ' ' || c == unicode.MaxASCII }
	if name == "" || len(whole) > space.MaxName || strings.ContainsFunc(name, blank) {
		return constraintsKey + "_" + plainName(name)
	}
	return whole
}

// system notes a system attribute if it has constraints.
func (t *optunaTrial) system(name string, value any) {
	if single, ok := strings.CutPrefix(name, constraintPrefix); ok {
		t.constrain(single, value)
	} else if list, ok := value.([]any); ok && name == constraintsKey {
		for i, one := range list[:min(len(list), study.MaxLimits+1)] {
			t.constrain(strconv.Itoa(i), one)
		}
	}
}

// systems notes system attributes, in the order of their names.
func (t *optunaTrial) systems(attributes map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		t.system(name, attributes[name])
	}
}

// constrain notes the value of a constraint. Minus infinity is the least finite number, since it meets
// the constraint; NaN is for one that is not known to.
func (t *optunaTrial) constrain(name string, value any) {
	f := math.NaN()
	if n, ok := value.(json.Number); ok {
		if parsed, err := n.Float64(); err == nil {
			f = parsed
		}
	} else if value == "-Infinity" {
		f = -math.MaxFloat64
	}
	metric := ConstraintMetric(name)
	if t.constraints == nil {
		t.constraints = map[string]float64{}
	}
	if _, ok := t.constraints[metric]; !ok {
		t.constrained = append(t.constrained, metric)
	}
	t.constraints[metric] = f
}

// limit sets the metrics of the constraints that completed trials have, in the order in which they
// are met first.
func (s *optunaStudy) limit() {
	for _, t := range s.trials {
		if s.problem(t) != "" {
			continue
		}
		for _, metric := range t.constrained {
			if !slices.Contains(s.constraints, metric) {
				s.constraints = append(s.constraints, metric)
			}
		}
	}
}

// limits returns the constraints as limits.
func (s *optunaStudy) limits() []study.Limit {
	var limits []study.Limit
	for _, metric := range s.constraints {
		limits = append(limits, study.Limit{Metric: metric, Max: new(0.0)})
	}
	return limits
}

// withConstraints adds the study's constraints to the metrics of a trial, as NaN where it lacks one.
func (s *optunaStudy) withConstraints(t *optunaTrial, metrics map[string]float64) map[string]float64 {
	if metrics == nil && len(s.constraints) > 0 {
		metrics = map[string]float64{}
	}
	for _, metric := range s.constraints {
		value, ok := t.constraints[metric]
		if !ok {
			value = math.NaN()
		}
		metrics[metric] = value
	}
	return metrics
}

// violation returns the sum of the values of a trial's constraints that it does not meet: 0 if it meets
// all of them, and infinity if one is not known.
func (s *optunaStudy) violation(t *optunaTrial) float64 {
	var sum float64
	for _, metric := range s.constraints {
		value, ok := t.constraints[metric]
		if !ok || math.IsNaN(value) {
			return math.Inf(1)
		}
		sum += max(value, 0)
	}
	return sum
}
