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

// format is the value of --output: how results are written.
type format string

// The formats of results.
const (
	formatText format = "text"
	formatJSON format = "json"
	formatYAML format = "yaml"
)

var _ pflag.Value = (*format)(nil)

func formats() []string { return []string{string(formatText), string(formatJSON), string(formatYAML)} }

// String returns the format's name.
func (f *format) String() string { return string(*f) }

// Set accepts the name of a format.
func (f *format) Set(name string) error {
	if !slices.Contains(formats(), name) {
		return fmt.Errorf("want one of %s", strings.Join(formats(), ", "))
	}
	*f = format(name)
	return nil
}

// Type returns the placeholder of the value in the help.
func (*format) Type() string { return strings.Join(formats(), "|") }

// addOutput adds --output to a command.
func addOutput(c *cobra.Command, f *format) {
	*f = formatText
	c.Flags().VarP(f, "output", "o", "output format")
	choices(c, "output", formats()...)
}

// choices completes the values of a flag of a command.
func choices(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the command has no such flag
	}
}

// write writes a result as text, by the given function, or as JSON or YAML.
func (f format) write(w io.Writer, result any, text func(screen) error) error {
	return f.indented(w, result, "  ", text)
}

// indented is write with another indent of JSON; without one, it is on a line of its own.
func (f format) indented(w io.Writer, result any, indent string, text func(screen) error) error {
	switch f {
	case formatJSON:
		return writeJSON(w, result, indent)
	case formatYAML:
		return writeYAML(w, result)
	default:
		return text(screenOf(w))
	}
}

// stream writes one of many results as it comes: JSON on a line of its own, YAML as a
// document of its own.
func (f format) stream(w io.Writer, result any, text func(screen) error) error {
	if f == formatYAML {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return fmt.Errorf("write a result: %w", err)
		}
	}
	return f.indented(w, result, "", text)
}

// shown is what a command prints: a result for scripts, and the same as text.
type shown struct {
	result any
	text   func(screen) error
}

// line is a result whose text is a formatted line.
func line(result any, format string, args ...any) shown {
	return shown{result, func(w screen) error { return say(w, format, args...) }}
}

// shows makes a command print what it returns, in the format of --output, which it adds.
func (a *app) shows(c *cobra.Command, run func(cmd *cobra.Command, args []string) (shown, error)) *cobra.Command {
	var output format
	addOutput(c, &output)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := run(cmd, args)
		if err != nil {
			return err
		}
		return output.write(a.Stdout, s.result, s.text)
	}
	return c
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

// writeYAML writes the YAML equivalent of writeJSON, with the same keys in the same
// order. It parses the JSON as YAML and writes it in block style.
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

// unquote clears the JSON style of a node and its children; the encoder adds quotes
// where they are needed. Empty lists and objects keep their style.
func unquote(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode || len(n.Content) > 0 {
		n.Style = 0
	}
	for _, child := range n.Content {
		unquote(child)
	}
}
