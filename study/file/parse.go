// Package file parses study files in YAML or JSON. It sets the defaults, and reports
// every problem with its place and what would be accepted.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/criteria"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// MaxSize is the largest size of a study file in bytes.
const MaxSize = 1 << 20

// AlgorithmCheck checks the settings of an algorithm. Its error may join several
// *SettingError (see errors.Join), each reported at its setting.
type AlgorithmCheck func(settings map[string]any) error

// StoppingCheck checks the settings of a rule that stops trials early. Its errors are
// reported as those of an AlgorithmCheck are.
type StoppingCheck func(e *study.EarlyStopping) error

// SettingError is a problem with one setting of an algorithm, or of a rule for early
// stopping.
type SettingError struct {
	Name    string
	Message string
	// Known lists the names of all settings if Name is unknown; Message is then not
	// needed.
	Known []string
}

// Error returns "name: message".
func (e *SettingError) Error() string { return e.Name + ": " + e.message() }

func (e *SettingError) message() string {
	switch {
	case e.Known == nil:
		return e.Message
	case len(e.Known) == 0:
		return fmt.Sprintf("unknown setting %q: there are none", e.Name)
	default:
		return fmt.Sprintf("unknown setting %q%s; known are %s", e.Name, check.DidYouMean(e.Name, e.Known), strings.Join(e.Known, ", "))
	}
}

// Option changes how a study file is parsed.
type Option func(*options)

type options struct {
	file       string
	algorithms map[string]AlgorithmCheck
	algorithm  string
	criteria   criteria.Algorithms
	stoppers   map[string]StoppingCheck
}

// DefaultAlgorithm is the algorithm of a study file that does not name one.
const DefaultAlgorithm = "hebo"

// DefaultRule is the rule for early stopping of a study file that does not name one. On recorded trainings it is ahead of
// the others, also with noise and where curves cross late: docs/tune/benchmarks.md.
const DefaultRule = "model"

// WithAlgorithms sets the known algorithms with the checks of their settings; a nil
// check accepts any settings. Without this option every name is accepted.
func WithAlgorithms(known map[string]AlgorithmCheck) Option {
	return func(o *options) { o.algorithms = known }
}

// WithSeveralObjectives names the known algorithms that take several objectives.
func WithSeveralObjectives(names []string) Option {
	return func(o *options) { o.criteria.Several = names }
}

// WithLimits names the known algorithms that take limits.
func WithLimits(names []string) Option { return func(o *options) { o.criteria.Limits = names } }

// WithEarlier names the known algorithms that learn from earlier studies.
func WithEarlier(names []string) Option { return func(o *options) { o.criteria.Earlier = names } }

// WithForecast names the known algorithms that forecast what more trials gain.
func WithForecast(names []string) Option { return func(o *options) { o.criteria.Forecast = names } }

// WithDefaultAlgorithm replaces DefaultAlgorithm.
func WithDefaultAlgorithm(name string) Option { return func(o *options) { o.algorithm = name } }

// WithEarlyStopping sets the known rules that stop trials early, with the checks of
// their settings. Without this option every name is accepted.
func WithEarlyStopping(known map[string]StoppingCheck) Option {
	return func(o *options) { o.stoppers = known }
}

// WithFile sets the file name with which problems are printed.
func WithFile(name string) Option { return func(o *options) { o.file = name } }

// Parse parses a study file in YAML or JSON and sets the defaults. Its error is a
// *study.Problems with every problem and its place.
func Parse(data []byte, opts ...Option) (*study.Study, error) {
	o := options{algorithm: DefaultAlgorithm}
	for _, opt := range opts {
		opt(&o)
	}
	d := &decoder{Problems: check.NewProblems()}
	var s *study.Study
	if root := d.load(data); root != nil {
		var f document
		d.decode(root, reflect.ValueOf(&f).Elem(), "")
		d.BreakFields()
		s = f.study()
		if root.Kind == yaml.MappingNode && !d.exhausted {
			f.Metadata.check(d.Problems)
			complete(s, d.Problems, &o)
		}
	}
	if err := d.Err(o.file); err != nil {
		return nil, err
	}
	return s, nil
}

// load returns the root of the only document in data, or nil after a problem.
func (d *decoder) load(data []byte) *yaml.Node {
	start := check.At(1, 1)
	if len(data) > MaxSize {
		d.AddAt(start, "", "the study file is larger than %d bytes, the most that is read", MaxSize)
		return nil
	}
	d.maxPaths = maxPaths(len(data))
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the mark with which editors of Windows begin a file
	if d.isJSON = isJSON(data); d.isJSON {
		return d.json(data)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		d.syntax(data, err)
		return nil
	}
	var document, next yaml.Node
	switch err := loader.Load(&document); {
	case errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0:
		d.AddAt(start, "", "the study file is empty: start with apiVersion: %s and kind: %s", study.APIVersion, study.Kind)
		return nil
	case err != nil:
		d.syntax(data, err)
		return nil
	}
	switch err := loader.Load(&next); {
	case err == nil:
		d.AddAt(check.At(next.Line, next.Column), "", "a second document starts here: a study file holds one study")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(data, err)
		return nil
	}
	return document.Content[0]
}

// syntax reports text that is neither JSON nor YAML.
func (d *decoder) syntax(data []byte, err error) {
	if at, message, ok := brokenJSON(data); ok {
		d.AddAt(at, "", "not JSON: %s", message)
		return
	}
	at, message := check.At(1, 1), err.Error()
	if located, ok := errors.AsType[*yaml.LoadError](err); ok {
		message = located.Message
		if located.Mark.Line > 0 {
			at = check.At(located.Mark.Line, max(located.Mark.Column, 1))
		}
	}
	if tabbed(data, at.Line) {
		message = "the line is indented with a tab: YAML wants spaces"
	}
	d.AddAt(at, "", "not YAML: %s", message)
}

// tabbed reports whether a line, counted from 1, has a tab in its indentation.
func tabbed(data []byte, line int) bool {
	n := 0
	for text := range bytes.Lines(data) {
		if n++; n == line {
			rest := bytes.TrimLeft(text, " \t")
			return bytes.ContainsRune(text[:len(text)-len(rest)], '\t')
		}
	}
	return false
}
