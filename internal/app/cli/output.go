package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	yaml "go.yaml.in/yaml/v4"
)

// format is how results are written: the value of --output.
type format string

// The formats of results.
const (
	formatText format = "text"
	formatJSON format = "json"
	formatYAML format = "yaml"
)

var _ pflag.Value = (*format)(nil)

func formats() []string { return []string{string(formatText), string(formatJSON), string(formatYAML)} }

// String is the format's name.
func (f *format) String() string { return string(*f) }

// Set takes one of the formats' names.
func (f *format) Set(name string) error {
	if !slices.Contains(formats(), name) {
		return fmt.Errorf("want one of %s", strings.Join(formats(), ", "))
	}
	*f = format(name)
	return nil
}

// Type is what help calls the value.
func (*format) Type() string { return strings.Join(formats(), "|") }

// addOutput adds --output to a command.
func addOutput(c *cobra.Command, f *format) {
	*f = formatText
	c.Flags().VarP(f, "output", "o", "how to write the result")
	complete := cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp)
	if err := c.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag was added above
	}
}

// write writes a result: as text through the function given, otherwise whole.
func (f format) write(w io.Writer, result any, text func(io.Writer) error) error {
	switch f {
	case formatJSON:
		return writeJSON(w, result, "  ")
	case formatYAML:
		return writeYAML(w, result)
	default:
		return text(w)
	}
}

// stream writes one result of many as it comes: JSON on a line of its own, YAML
// as a document.
func (f format) stream(w io.Writer, result any, text func(io.Writer) error) error {
	switch f {
	case formatJSON:
		return writeJSON(w, result, "")
	case formatYAML:
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return fmt.Errorf("write a result: %w", err)
		}
		return writeYAML(w, result)
	default:
		return text(w)
	}
}

func writeJSON(w io.Writer, result any, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(result); err != nil {
		return fmt.Errorf("write a result as JSON: %w", err)
	}
	return nil
}

// writeYAML writes what writeJSON does, key for key and in its order: JSON is
// read as the YAML that it is, and written in block style.
func writeYAML(w io.Writer, result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("write a result as YAML: %w", err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return fmt.Errorf("write a result as YAML: %w", err)
	}
	unquote(&node)
	block, err := yaml.Marshal(&node)
	if err != nil {
		return fmt.Errorf("write a result as YAML: %w", err)
	}
	if _, err := w.Write(block); err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	return nil
}

// unquote takes the style of JSON from a node and all below it; the encoder
// quotes again what needs it. Empty lists and objects keep theirs.
func unquote(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode || len(n.Content) > 0 {
		n.Style = 0
	}
	for _, child := range n.Content {
		unquote(child)
	}
}
