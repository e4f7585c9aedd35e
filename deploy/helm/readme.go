package helm

import (
	"bytes"
	_ "embed" // for the template of the README
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

//go:embed readme.md.tmpl
var readmeTemplate string

// row is a value in the README's tables.
type row struct{ Name, Default, Doc string }

// section is a table of the README: a group of values at the top.
type section struct {
	Name, Doc string
	Rows      []row
}

// README is the chart's, with a table of all values.
func README(root *Value) ([]byte, error) {
	general := section{Name: "general"}
	var sections []section
	for _, group := range root.Children {
		if len(group.Children) == 0 {
			r, err := rowOf(group)
			if err != nil {
				return nil, err
			}
			general.Rows = append(general.Rows, r)
			continue
		}
		s := section{Name: group.Name(), Doc: group.Doc}
		for _, v := range group.Leaves() {
			r, err := rowOf(v)
			if err != nil {
				return nil, err
			}
			s.Rows = append(s.Rows, r)
		}
		sections = append(sections, s)
	}
	t, err := template.New("readme").Parse(readmeTemplate)
	if err != nil {
		return nil, fmt.Errorf("README: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, append([]section{general}, sections...)); err != nil {
		return nil, fmt.Errorf("README: %w", err)
	}
	return out.Bytes(), nil
}

func rowOf(v *Value) (row, error) {
	text, err := json.Marshal(v.Default)
	if err != nil {
		return row{}, fmt.Errorf("value %s: %w", v.Name(), err)
	}
	return row{Name: v.Name(), Default: string(text), Doc: strings.ReplaceAll(v.Doc, "|", `\|`)}, nil
}
