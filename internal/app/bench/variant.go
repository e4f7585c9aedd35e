package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Variant is an optimiser with settings, and the name to show for it.
type Variant struct {
	Label     string
	Optimizer string
	Settings  map[string]any
}

// ParseVariants parses variants separated by commas: NAME, NAME{key=value,…}, or
// LABEL=NAME{key=value,…}. The error names the variant and what is accepted.
func ParseVariants(texts []string) ([]Variant, error) {
	var variants []Variant
	for _, text := range texts {
		for _, one := range splitOutside(text, ',') {
			v, err := parseVariant(one)
			if err != nil {
				return nil, err
			}
			variants = append(variants, v)
		}
	}
	labels := map[string]bool{}
	for i := range variants {
		v := &variants[i]
		if err := v.check(); err != nil {
			return nil, err
		}
		if labels[v.Label] {
			return nil, fmt.Errorf("%q appears twice; give one of them another name, as in again=%s", v.Label, v.Label)
		}
		labels[v.Label] = true
	}
	if len(variants) == 0 {
		return nil, fmt.Errorf("no optimiser is named; want one or more of %s", strings.Join(registry.Names(), ", "))
	}
	return variants, nil
}

// Share adds settings, "key=value" each, to all variants whose optimiser has them,
// unless a variant sets them itself.
func Share(variants []Variant, settings []string) error {
	for _, text := range settings {
		if err := share(variants, text); err != nil {
			return err
		}
	}
	for i := range variants {
		if err := variants[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// check reports settings that the optimiser does not accept.
func (v *Variant) check() error {
	if err := registry.Check(v.Optimizer, v.Settings); err != nil {
		return fmt.Errorf("%s: %w", v.Label, err)
	}
	return nil
}

// splitOutside splits a text at separators outside of braces.
func splitOutside(text string, separator rune) []string {
	var parts []string
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case separator:
			if depth == 0 {
				parts = append(parts, text[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, text[from:])
}

func parseVariant(text string) (Variant, error) {
	text = strings.TrimSpace(text)
	v := Variant{Label: text, Settings: map[string]any{}}
	named := splitOutside(text, '=')
	if len(named) > 2 {
		return v, fmt.Errorf("%q has more than one name; want NAME, NAME{key=value,…} or LABEL=NAME{…}", text)
	}
	if len(named) == 2 {
		v.Label = strings.TrimSpace(named[0])
	}
	name, braces, has := strings.Cut(named[len(named)-1], "{")
	v.Optimizer = strings.TrimSpace(name)
	if v.Label == "" || v.Optimizer == "" {
		return v, fmt.Errorf("%q names no optimiser; want one of %s", text, strings.Join(registry.Names(), ", "))
	}
	entry, err := registry.Find(v.Optimizer)
	if err != nil || !has {
		return v, err
	}
	inner, closed := strings.CutSuffix(strings.TrimSpace(braces), "}")
	if !closed {
		return v, fmt.Errorf("%q has no closing brace; want NAME{key=value,…}", text)
	}
	for _, assignment := range strings.Split(inner, ",") {
		key, value, err := parseSetting(assignment)
		if err != nil {
			return v, fmt.Errorf("%s: %w", v.Label, err)
		}
		v.Settings[key] = typed(entry.Settings, key, value)
	}
	return v, nil
}

func parseSetting(text string) (key, value string, err error) {
	key, value, ok := strings.Cut(text, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" || value == "" {
		return "", "", fmt.Errorf("setting %q is not accepted; want key=value", text)
	}
	return key, value, nil
}

// share adds a setting to the variants that accept it.
func share(variants []Variant, text string) error {
	key, value, err := parseSetting(text)
	if err != nil {
		return err
	}
	known := false
	for i := range variants {
		entry, err := registry.Find(variants[i].Optimizer)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(entry.Settings, func(s setting.Setting) bool { return s.Name == key }) {
			continue
		}
		known = true
		if _, own := variants[i].Settings[key]; !own {
			variants[i].Settings[key] = typed(entry.Settings, key, value)
		}
	}
	if !known {
		return fmt.Errorf("setting %q: none of the optimisers has it", key)
	}
	return nil
}

// typed returns a setting's value in the type of its default, or the text itself if it
// cannot be converted: the optimiser then refuses it.
func typed(settings setting.Set, key, text string) any {
	i := slices.IndexFunc(settings, func(s setting.Setting) bool { return s.Name == key })
	if i < 0 {
		return text
	}
	var value any
	err := errors.ErrUnsupported
	switch settings[i].Default.(type) {
	case int:
		value, err = strconv.ParseInt(text, 10, 64)
	case float64:
		value, err = strconv.ParseFloat(text, 64)
	case bool:
		value, err = strconv.ParseBool(text)
	}
	if err != nil {
		return text
	}
	return value
}
