package migrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// journalEntry is a line of a journal of Optuna (optuna/storages/journal/_storage.py of Optuna).
type journalEntry struct {
	Op         int    `json:"op_code"`
	Study      int    `json:"study_id"`
	StudyName  string `json:"study_name"`
	Directions []int  `json:"directions"`

	Trial  int            `json:"trial_id"`
	Number *int           `json:"number"` // of a new trial: only copies of databases have it
	State  *int           `json:"state"`
	Value  *pythonFloat   `json:"value"`
	Values []*pythonFloat `json:"values"`

	Name         string            `json:"param_name"`
	Internal     pythonFloat       `json:"param_value_internal"`
	Distribution string            `json:"distribution"`
	Params       journalParams     `json:"params"`
	Texts        map[string]string `json:"distributions"`

	Attribute  map[string]any `json:"user_attr"`
	Attributes map[string]any `json:"user_attrs"`
	System     map[string]any `json:"system_attr"`
	Systems    map[string]any `json:"system_attrs"`
}

// journalParams are the parameters of a trial in the order in which the journal has them.
type journalParams []journalParam

type journalParam struct {
	name  string
	value pythonFloat
}

// UnmarshalJSON reads an object.
func (params *journalParams) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		if begin == nil && err == nil {
			return nil
		}
		return fmt.Errorf("params is %s: want an object", text)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var p journalParam
		if err := decoder.Decode(&p.value); err != nil {
			return err
		}
		p.name, _ = name.(string)
		*params = append(*params, p)
	}
	return nil
}

// The operations of a journal that matter to an import.
const (
	journalCreateStudy  = 0
	journalDeleteStudy  = 1
	journalSetStudyUser = 2
	journalCreateTrial  = 4
	journalSetParam     = 5
	journalSetState     = 6
	journalSetUser      = 8
	journalSetSystem    = 9
	journalLastOp       = journalSetSystem
)

// The states of trials and the directions of studies, by their numbers in a journal.
var (
	journalStates     = []string{"RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING"}
	journalDirections = []string{"NOT_SET", "MINIMIZE", "MAXIMIZE"}
)

// journal is what the lines of a journal say together.
type journal struct {
	studies []storedStudy // a deleted one has the id -1
	// trials are those of all studies, by their ids; ofStudy are the ids of a study's trials.
	trials  []*optunaTrial
	ofStudy [][]int
	known   distributions
}

// readJournal reads a study from a journal. As Optuna does, it ignores a last line that was not
// written to its end.
func readJournal(from io.Reader, name string) (*optunaStudy, error) {
	j, err := readLines(bufio.NewReader(from))
	if err != nil {
		return nil, fmt.Errorf("%w: not a journal of Optuna: %w", ErrSource, err)
	}
	return j.study(name)
}

// readLines applies the lines of a journal.
func readLines(in *bufio.Reader) (*journal, error) {
	j := &journal{known: distributions{}}
	for number := 1; ; number++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return j, nil
		}
		if err == nil {
			var e journalEntry
			if err = unmarshalPython(line, &e); err == nil {
				err = j.apply(&e)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
}

// study returns the study of that name, or for an empty name the only one.
func (j *journal) study(name string) (*optunaStudy, error) {
	found, err := chooseStudy(slices.DeleteFunc(slices.Clone(j.studies), func(s storedStudy) bool { return s.id < 0 }), name)
	if err != nil {
		return nil, err
	}
	s, err := found.study()
	if err != nil {
		return nil, err
	}
	for _, id := range j.ofStudy[found.id] {
		s.trials = append(s.trials, j.trials[id])
	}
	s.limit()
	return s, nil
}

// apply applies a line. A line about a study or a trial that is gone, and about a trial that has
// ended, has no effect.
func (j *journal) apply(e *journalEntry) error {
	if e.Op < 0 || e.Op > journalLastOp {
		return fmt.Errorf("op_code is %d: want 0 to %d", e.Op, journalLastOp)
	}
	if e.State != nil && (*e.State < 0 || *e.State >= len(journalStates)) {
		return fmt.Errorf("state is %d: want 0 to %d", *e.State, len(journalStates)-1)
	}
	there := e.Study >= 0 && e.Study < len(j.studies) && j.studies[e.Study].id >= 0
	switch {
	case e.Op == journalCreateStudy:
		return j.createStudy(e)
	case e.Op == journalDeleteStudy && there:
		j.studies[e.Study].id = -1
	case e.Op == journalSetStudyUser && there:
		maps.Copy(j.studies[e.Study].attributes, e.Attribute)
	case e.Op == journalCreateTrial && there:
		return j.createTrial(e)
	case (e.Op == journalSetParam || e.Op == journalSetState || e.Op == journalSetUser || e.Op == journalSetSystem) && e.Trial >= 0 &&
		e.Trial < len(j.trials):
		t := j.trials[e.Trial]
		if t.state != "RUNNING" && t.state != "WAITING" {
			return nil
		}
		switch e.Op {
		case journalSetParam:
			return t.set(e.Name, float64(e.Internal), j.known.get(e.Distribution))
		case journalSetUser:
			for name, value := range e.Attribute {
				t.attribute(name, value)
			}
		case journalSetSystem:
			t.systems(e.System)
		default:
			t.end(e)
		}
	}
	return nil
}

func (j *journal) createStudy(e *journalEntry) error {
	if slices.ContainsFunc(j.studies, func(s storedStudy) bool { return s.id >= 0 && s.name == e.StudyName }) {
		return nil // another process was faster
	}
	made := storedStudy{id: int64(len(j.studies)), name: e.StudyName, attributes: map[string]any{}}
	for _, d := range e.Directions {
		if d < 0 || d >= len(journalDirections) {
			return fmt.Errorf("directions has %d: want 0 to %d", d, len(journalDirections)-1)
		}
		made.directions = append(made.directions, journalDirections[d])
	}
	j.studies, j.ofStudy = append(j.studies, made), append(j.ofStudy, nil)
	return nil
}

// createTrial adds a trial, which may have been added whole.
func (j *journal) createTrial(e *journalEntry) error {
	if len(j.trials) == maxTrials {
		return fmt.Errorf("it has more than %d trials; want at most that", maxTrials)
	}
	t := &optunaTrial{number: len(j.ofStudy[e.Study]), state: journalStates[0]}
	if e.Number != nil {
		t.number = *e.Number
	}
	j.ofStudy[e.Study] = append(j.ofStudy[e.Study], len(j.trials))
	j.trials = append(j.trials, t)
	for _, p := range e.Params {
		if err := t.set(p.name, float64(p.value), j.known.get(e.Texts[p.name])); err != nil {
			return err
		}
	}
	for name, value := range e.Attributes {
		t.attribute(name, value)
	}
	t.systems(e.Systems)
	t.end(e)
	return nil
}

// set sets a parameter.
func (t *optunaTrial) set(name string, value float64, d *distribution) error {
	p := optunaParameter{name, value, d}
	if i := slices.IndexFunc(t.parameters, func(p optunaParameter) bool { return p.name == name }); i >= 0 {
		t.parameters[i] = p
		return nil
	}
	if len(t.parameters) == space.MaxParameters {
		return fmt.Errorf("trial %d has more parameters than a study can have, %d", t.number, space.MaxParameters)
	}
	t.parameters = append(t.parameters, p)
	return nil
}

// end sets the state and the values that a line has.
func (t *optunaTrial) end(e *journalEntry) {
	if e.State != nil {
		t.state = journalStates[*e.State]
	}
	if e.Value != nil {
		e.Values = []*pythonFloat{e.Value}
	}
	if len(e.Values) > 0 {
		t.values = nil
	}
	for _, v := range e.Values[:min(len(e.Values), study.MaxObjectives)] {
		if v == nil {
			v = new(pythonFloat(math.NaN()))
		}
		t.values = append(t.values, float64(*v))
	}
}
