// Package migrate converts studies of other tuners to study files: an Experiment of
// Katib, a study of Optuna. Notes list everything without a counterpart; nothing is
// dropped silently.
package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// ErrSource means that the source is not valid for an import.
var ErrSource = errors.New("cannot be imported")

// Result is the result of an import.
type Result struct {
	// Study is a valid study file in YAML.
	Study []byte
	// Template is a manifest for `kubeworker --template`; nil if the source has
	// none.
	Template []byte
	// Container is the program's container in Template.
	Container string
	// Notes lists, one sentence each, what changed its meaning or was left out.
	Notes []string
}

// note adds a note.
func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// renamed notes that a parameter has another name in the study.
func (r *Result) renamed(from, to string) {
	r.note("%q is called %s here, since a study cannot have that name", from, to)
}

// render writes the study file, with the notes as comments, and checks it.
func (r *Result) render(s *study.Study) error {
	body, err := blockYAML(s)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "# %s\n", strings.ReplaceAll(n, "\n", "\n# "))
	}
	b.Write(body)
	if _, err := file.Parse(b.Bytes()); err != nil {
		if problems, ok := errors.AsType[*study.Problems](err); ok {
			for i := range problems.List {
				problems.List[i].Line = 0 // of a file that the user never sees
			}
		}
		return fmt.Errorf("%w: the resulting study is not valid: %w", ErrSource, err)
	}
	r.Study = b.Bytes()
	return nil
}

// blockYAML encodes a value by its JSON tags, in the order of its fields.
func blockYAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write the study: %w", err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("write the study: %w", err)
	}
	unflow(&root, 0)
	return encode(&root)
}

// flowDepth is the depth in a study file from which collections are written on one
// line: a parameter is, its spec is not. jobDepth is how much deeper a Job's are.
const flowDepth, jobDepth = 4, 8

// unflow gives the outer collections block style, and removes unnecessary quotes.
func unflow(n *yaml.Node, depth int) {
	if n.Kind != yaml.ScalarNode && depth < flowDepth {
		n.Style &^= yaml.FlowStyle
	}
	if n.Kind == yaml.ScalarNode && n.Style&yaml.DoubleQuotedStyle != 0 {
		n.Style = 0
	}
	for i, child := range n.Content {
		next := depth + 1
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "job" {
			next -= jobDepth
		}
		unflow(child, next)
	}
}

func encode(root *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(root), e.Close()); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return b.Bytes(), nil
}
