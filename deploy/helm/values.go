package helm

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Value is a value of the chart, as values.yaml has it.
type Value struct {
	// Path are the keys that lead to it.
	Path []string
	// Doc is its comment.
	Doc string
	// Schema is what the comment says of it besides its default: JSON Schema.
	Schema map[string]any
	// Default is its default; nil where it has Children.
	Default  any
	Children []*Value
}

// Name is the path with dots.
func (v *Value) Name() string { return strings.Join(v.Path, ".") }

// Leaves are the values below v that have a default, in the file's order.
func (v *Value) Leaves() []*Value {
	if len(v.Children) == 0 {
		return []*Value{v}
	}
	var all []*Value
	for _, c := range v.Children {
		all = append(all, c.Leaves()...)
	}
	return all
}

// schemaMark begins a comment's line that holds JSON Schema.
const schemaMark = "@schema "

// ParseValues reads values.yaml. A mapping with children in block style is a
// group; any other value is a leaf.
func ParseValues(file []byte) (*Value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(file, &document); err != nil {
		return nil, fmt.Errorf("read the values: %w", err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("read the values: want a mapping of names to values")
	}
	root := &Value{}
	return root, root.read(document.Content[0])
}

func (v *Value) read(n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		child := &Value{Path: append(append([]string{}, v.Path...), key.Value)}
		if err := child.comment(key.HeadComment); err != nil {
			return err
		}
		v.Children = append(v.Children, child)
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 && child.Schema == nil {
			if err := child.read(value); err != nil {
				return err
			}
			continue
		}
		if child.Doc == "" {
			return fmt.Errorf("value %s has no comment", child.Name())
		}
		if err := value.Decode(&child.Default); err != nil {
			return fmt.Errorf("value %s: %w", child.Name(), err)
		}
	}
	return nil
}

// comment takes a value's comment apart. Of several blocks the last is the value's.
func (v *Value) comment(text string) error {
	blocks := strings.Split(text, "\n\n")
	var doc []string
	for line := range strings.SplitSeq(blocks[len(blocks)-1], "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		if schema, ok := strings.CutPrefix(line, schemaMark); ok {
			if err := json.Unmarshal([]byte(schema), &v.Schema); err != nil {
				return fmt.Errorf("value %s: %q: %w", v.Name(), line, err)
			}
		} else if line != "" {
			doc = append(doc, line)
		}
	}
	v.Doc = strings.Join(doc, " ")
	return nil
}
