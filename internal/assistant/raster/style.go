package raster

import (
	"image/color"
	"slices"
	"strconv"
	"strings"
)

// rule gives the elements that have all of its classes some properties. An element without a
// class is named in place of one, as "text".
type rule struct {
	classes    []string
	properties map[string]string
}

// rules are in the order of the stylesheet, where a later one wins.
type rules []rule

// parseRules reads the stylesheet of a picture without its parts for other media.
func parseRules(sheet string) (list rules) {
	for sheet != "" {
		head, rest, ok := strings.Cut(sheet, "{")
		if !ok {
			return list
		}
		head = strings.TrimSpace(head)
		if strings.HasPrefix(head, "@") {
			return list // the dark form, which comes last
		}
		body, rest, _ := strings.Cut(rest, "}")
		properties := map[string]string{}
		for declaration := range strings.SplitSeq(body, ";") {
			name, value, _ := strings.Cut(declaration, ":")
			properties[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		for selector := range strings.SplitSeq(head, ",") {
			inner := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(selector), ".picture"), " ")
			classes := slices.DeleteFunc(strings.Split(inner, "."), func(s string) bool { return s == "" })
			list = append(list, rule{classes, properties})
		}
		sheet = rest
	}
	return list
}

// style is the properties of an element, with every var() replaced.
type style map[string]string

// of returns the style of an element.
func (r rules) of(e *element) style {
	has := append(strings.Fields(e.attributes["class"]), e.name)
	s := style{}
	for _, one := range r {
		if slices.ContainsFunc(one.classes, func(c string) bool { return !slices.Contains(has, c) }) {
			continue
		}
		for name, value := range one.properties {
			s[name] = value
		}
	}
	for name, value := range s {
		if variable, ok := strings.CutPrefix(value, "var("); ok {
			s[name] = s[strings.TrimSuffix(variable, ")")]
		}
	}
	return s
}

// number returns a property without its unit.
func (s style) number(name string, usual float64) float64 {
	if v, err := strconv.ParseFloat(strings.TrimSuffix(s[name], "px"), 64); err == nil {
		return v
	}
	return usual
}

// paint returns the colour of fill or stroke with its opacity; false if there is nothing to see.
func (s style) paint(name string, usual color.NRGBA) (color.NRGBA, bool) {
	c := usual
	if value, ok := s[name]; ok {
		if c, ok = hex(value); !ok {
			return c, false
		}
	}
	c.A = uint8(float64(c.A)*s.number(name+"-opacity", 1) + 0.5)
	return c, c.A > 0
}

// hex reads a colour such as #0072b2; false for none.
func hex(text string) (c color.NRGBA, ok bool) {
	digits, ok := strings.CutPrefix(text, "#")
	v, err := strconv.ParseUint(digits, 16, 32)
	if !ok || err != nil || len(digits) != 6 {
		return c, false
	}
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}, true
}

// numbers reads a list of numbers; nil if any is not one.
func numbers(text string) (list []float64) {
	for _, word := range strings.Fields(text) {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || v <= 0 {
			return nil
		}
		list = append(list, v)
	}
	return list
}
