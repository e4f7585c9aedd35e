package messaging

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// CheckSize returns a *study.Problems if an assignment of the study's trials can be larger
// than MaxEnvelope, so that it could not be sent to a worker. It counts the longest value
// of each parameter, and the longest checkpoint.
func CheckSize(s *study.Study) error {
	a := &Assignment{
		Version: SchemaVersion,
		AttemptID: AttemptID{Study: strings.Repeat("s", MaxToken), Trial: math.MaxInt32, Attempt: math.MaxInt32,
			Nonce: strings.Repeat("n", MaxToken)},
		Pool:       s.Spec.Pool,
		StudyName:  s.Metadata.Name,
		Seed:       math.MaxUint64,
		Objective:  s.Spec.Objective,
		Several:    s.Spec.Several,
		Limits:     s.Spec.Limits,
		Run:        s.Spec.Trial,
		Parameters: study.Point{},
		Checkpoint: strings.Repeat("<", MaxReference), // in JSON, < takes six bytes
	}
	for i := range s.Spec.Parameters {
		p := &s.Spec.Parameters[i]
		a.Parameters[p.Name] = longest(p)
		a.ParameterOrder = append(a.ParameterOrder, p.Name)
	}
	a.Reached = longestReached(a.MetricNames())
	size := length(a)
	if size <= MaxEnvelope {
		return nil
	}
	largest, most := "", 0
	for _, part := range []struct {
		path  string
		value any
	}{
		{"spec.trial.command", s.Spec.Trial.Command}, {"spec.trial.env", s.Spec.Trial.Env}, {"spec.trial.job", s.Spec.Trial.Job},
		{"spec.parameters", []any{a.Parameters, a.ParameterOrder}}, {"spec.trial", s.Spec.Trial},
	} {
		if n := length(part.value); n > most+most/4 { // a part rather than the whole that it makes up
			largest, most = part.path, n
		}
	}
	return &study.Problems{List: []study.Problem{{
		Path: largest,
		Message: fmt.Sprintf("a trial's message to its worker could have %d bytes, but the limit is %d; this field takes %d: "+
			"move long texts into a file that the program reads", size, MaxEnvelope, most),
	}}}
}

// longestReached returns what earlier attempts may have reported of the metrics, at its longest.
func longestReached(metrics []string) *Reached {
	r := &Reached{Attempt: math.MaxInt32, Best: map[string]Number{}, Last: map[string]Number{}, Steps: map[string]int64{}}
	for _, name := range metrics {
		r.Best[name], r.Last[name], r.Steps[name] = -0x1p-1022, -0x1p-1022, math.MinInt64
	}
	return r
}

// longest returns the value of a parameter that takes the most bytes as JSON.
func longest(p *study.Parameter) any {
	switch p.Type {
	case study.Float:
		return -0x1p-1022 // -2.2250738585072014e-308: no float has more than 24 characters
	case study.Int:
		return int64(-1 << 53)
	case study.Bool:
		return false
	case study.Fixed:
		return p.Value
	}
	var value any
	most := -1
	for _, v := range p.Values {
		if n := length(v); n > most {
			value, most = v, n
		}
	}
	return value
}

// length returns the size of a value as JSON, 0 if it has none.
func length(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(raw)
}
