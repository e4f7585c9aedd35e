package kubejob

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fantasia-hpo/fantasia/study"
)

// maxTemplate is the largest size of a template, in bytes.
const maxTemplate = 256 << 10

// template is a manifest whose strings may contain ${words}. It is safe for concurrent
// use.
type template struct {
	source []byte
	texts  []string // those that contain a word
	kind   schema.GroupVersionKind
	names  string // its namespace
	// shape is the manifest with placeholder values.
	shape *unstructured.Unstructured
}

// parseTemplate parses one manifest.
func parseTemplate(source []byte) (*template, error) {
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("template: it has %d bytes, at most %d are accepted", len(source), maxTemplate)
	}
	t := &template{source: source}
	root, err := t.parse()
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	err = walk(root, func(n *yaml.Node, _ bool) ([]string, error) {
		t.texts = append(t.texts, n.Value)
		return []string{placeholder(n)}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	if _, err := study.NewExpander(t.texts, nil, nil, nil); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	object, err := decode(root)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	t.kind, t.names, t.shape = object.GroupVersionKind(), object.GetNamespace(), object
	if t.kind.Kind == "" || t.kind.Version == "" {
		return nil, errors.New("template: apiVersion and kind are required, such as batch/v1 and Job")
	}
	return t, nil
}

// savesCheckpoints reports whether the template gives each trial its place for checkpoints, into which
// a worker cannot look.
func (t *template) savesCheckpoints() bool {
	return bytes.Contains(t.source, []byte("FANTASIA_CHECKPOINT_KEY"))
}

func (t *template) parse() (*yaml.Node, error) {
	var root yaml.Node
	loader := yaml.NewDecoder(strings.NewReader(string(t.source)))
	if err := loader.Decode(&root); err != nil {
		return nil, err
	}
	var second yaml.Node
	if err := loader.Decode(&second); err == nil {
		return nil, errors.New("got several documents, want one resource")
	}
	if len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("got no mapping, want one Kubernetes resource")
	}
	return &root, nil
}

// render returns the manifest for a point. Values stay strings unless a tag says
// otherwise: "!!int ${workers}" becomes a number.
func (t *template) render(order []string, point study.Point, words map[string]string) (*unstructured.Unstructured, error) {
	root, err := t.parse()
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	x, err := study.NewExpander(t.texts, order, point, words)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	err = walk(root, func(n *yaml.Node, element bool) ([]string, error) {
		expand := x.Expand
		if element { // of a program's arguments, for example
			expand = x.ExpandArgument
		}
		texts, err := expand(n.Value)
		switch {
		case err != nil:
			return nil, fmt.Errorf("template: line %d, %q: %w", n.Line, n.Value, err)
		case !element && len(texts) != 1:
			return nil, fmt.Errorf("template: line %d: %s stands for several texts, must be an element of a list", n.Line, n.Value)
		}
		return texts, nil
	})
	if err != nil {
		return nil, err
	}
	object, err := decode(root)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return object, nil
}

// placeholder returns a value of the kind that a string's tag requires.
func placeholder(n *yaml.Node) string {
	if n.ShortTag() == "!!bool" {
		return "true"
	}
	return "0"
}

// walk replaces every value that contains ${ by the result of expand: one string, or
// any number of strings for an element of a list. Keys are not changed. An alias is
// visited once, at its anchor.
func walk(n *yaml.Node, expand func(n *yaml.Node, element bool) ([]string, error)) error {
	var content []*yaml.Node
	for i, child := range n.Content {
		key := n.Kind == yaml.MappingNode && i%2 == 0
		if child.Kind != yaml.ScalarNode || key || !strings.Contains(child.Value, "${") {
			if !key {
				if err := walk(child, expand); err != nil {
					return err
				}
			}
			content = append(content, child)
			continue
		}
		texts, err := expand(child, n.Kind == yaml.SequenceNode)
		if err != nil {
			return err
		}
		for _, text := range texts {
			content = append(content, scalar(child, text))
		}
	}
	n.Content = content
	return nil
}

// scalar returns a node with another text. It keeps the node's tag; without one, it is
// a string.
func scalar(n *yaml.Node, text string) *yaml.Node {
	changed := *n
	changed.Value = text
	if n.Style&yaml.TaggedStyle == 0 {
		changed.Tag, changed.Style = "!!str", yaml.DoubleQuotedStyle
	}
	return &changed
}

// decode converts a document to a resource.
func decode(root *yaml.Node) (*unstructured.Unstructured, error) {
	var content map[string]any
	if err := root.Decode(&content); err != nil {
		return nil, err
	}
	// JSON gives int64 integers, which resources need.
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	return object, nil
}
