package migrate

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// maxShown bounds the characters of a value in a message: a file can have a long text, and
// repeat it in each row.
const maxShown = 200

// clipped shortens a text for a message.
func clipped(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// shown returns a value for a message.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(clipped(v))
	case json.Number:
		return clipped(v.String())
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return study.Quote(v)
	}
}

// blank reports whether a value can mean that there is none: an empty cell, or the NaN that
// pandas writes for an inactive parameter.
func blank(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case float64:
		return math.IsNaN(v)
	case string:
		text := strings.TrimSpace(v)
		return text == "" || strings.EqualFold(text, "nan")
	default:
		return false
	}
}

// typed returns a value that was read from text, JSON or Parquet as the parameter has it.
func (c *collector) typed(p *study.Parameter, v any) (any, error) {
	switch p.Type {
	case study.Float, study.Int, study.Fidelity:
		n, err := c.number(v)
		if err != nil {
			return nil, err
		}
		return p.Convert(n)
	case study.Bool:
		if n, err := c.number(v); err == nil && (n == 0 || n == 1) {
			return n == 1, nil
		}
		return c.choice([]any{false, true}, v)
	default:
		return c.choice(p.Listed(), v)
	}
}

var (
	errNoChoice = errors.New("not one of the choices")
	errFinite   = errors.New("want a finite number, such as 0.5")
)

// choice returns the choice that a value is. Choices are unique as text, so a choice whose
// text is the same comes first. Other spellings are accepted of numbers and booleans only:
// "3.10" may be another choice than "3.1", or another version of a program.
func (c *collector) choice(choices []any, v any) (any, error) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string, bool, int64, float64:
		text = study.Format(v)
	default:
		return nil, errNoChoice
	}
	trimmed := strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	for _, exact := range []string{text, trimmed} {
		for _, choice := range choices {
			if study.Format(choice) == exact {
				return choice, nil
			}
		}
	}
	n, err := c.number(v)
	for _, choice := range choices {
		switch choice := choice.(type) {
		case bool:
			if strings.EqualFold(trimmed, study.Format(choice)) {
				return choice, nil
			}
		case int64, float64:
			// Beyond MaxExact, a float64 may stand for several whole numbers.
			if err == nil && (choice == any(n) || math.Abs(n) <= study.MaxExact && study.Equal(choice, n)) {
				return choice, nil
			}
		}
	}
	return nil, errNoChoice
}

// number returns a finite number that was read from text, JSON or Parquet.
func (c *collector) number(v any) (float64, error) {
	n := math.NaN()
	switch v := v.(type) {
	case float64:
		n = v
	case int64:
		n = float64(v)
	case json.Number:
		n = parsed(v.String())
	case string:
		text := strings.TrimSpace(v)
		if c.signs.commas && strings.Count(text, ",") == 1 && !strings.Contains(text, ".") {
			text = strings.Replace(text, ",", ".", 1)
		}
		n = parsed(text)
	}
	if !study.Finite(n) {
		return 0, errFinite
	}
	return n, nil
}

// parsed returns the number that a text is; NaN for none. Go's own "1_000" and "0x1p4" are none: others take
// the underscore for a part of a name.
func parsed(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsAny(text, "_xX") {
		return math.NaN()
	}
	return n
}
