package file

import (
	"fmt"
	"regexp"

	yaml "go.yaml.in/yaml/v4"
)

// Study files are YAML 1.2, in which these are texts. kubectl and Helm read YAML 1.1, in which the words are booleans
// (https://yaml.org/type/bool.html). Times and dates (https://yaml.org/type/int.html and timestamp.html) are texts to
// kubectl, too, but not to PyYAML, for example.
var (
	booleans    = regexp.MustCompile(`^(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)$`)
	sexagesimal = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)
	octal       = regexp.MustCompile(`^[-+]?0o[0-7]+$`)
)

// Elsewhere lists the places of a study file that other tools read differently, each with its line, what they make of it,
// and what to write. It is empty for JSON and for a text that is no YAML.
func Elsewhere(text []byte) []string {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil
	}
	return elsewhere(&root, nil)
}

func elsewhere(n *yaml.Node, notes []string) []string {
	if n.Kind == yaml.ScalarNode && n.Style == 0 {
		if what := readElsewhere(n); what != "" {
			notes = append(notes, fmt.Sprintf("line %d, column %d: %s: put it in quotes", n.Line, n.Column, what))
		}
	}
	for _, child := range n.Content {
		notes = elsewhere(child, notes)
	}
	return notes
}

// readElsewhere says how other tools read a plain scalar; empty if they read it as we do.
func readElsewhere(n *yaml.Node) string {
	tag, v := n.ShortTag(), n.Value
	switch {
	case tag == "!!str" && booleans.MatchString(v):
		return v + " is text here, and a boolean to kubectl and Helm"
	case tag == "!!str" && sexagesimal.MatchString(v):
		return v + " is text here, and a number of base 60 to some tools"
	case tag == "!!timestamp":
		return v + " is text here, and a date to some tools"
	case tag == "!!int" && octal.MatchString(v):
		return v + " is an octal number here and to kubectl, and text to some tools"
	}
	return ""
}
