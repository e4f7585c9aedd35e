package report

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// The ways in which languages print numbers that strconv.ParseFloat does not read. A test
// lists each with its language.
var (
	// A sign, a payload or the size of the number may be with a NaN. NA is R's missing value.
	notANumber = regexp.MustCompile(`^(?:[+-]?(?i:[qs]?nan)(?:16|32|64)?(?:\(\w*\)?)?|NA)$`)
	infinite   = regexp.MustCompile(`^([+-]?)(?:∞|Inf(?:16|32|64)|1\.#INF\d*(?:[eE][+-]?\d+)?)$`)
	// Old runtimes of Microsoft print digits of a NaN's name: 1.#QNAN, 1.#QNAN0, 1.#R.
	microsoft = regexp.MustCompile(`^[+-]?1\.#[A-Z]+\d*(?:[eE][+-]?\d+)?$`)
	// Fortran's exponent has a D or a Q, or no letter if it has three digits; Julia's has an f.
	exponent = regexp.MustCompile(`^([+-]?(?:\d+\.?\d*|\.\d+))[dDqQf]([+-]?\d+)$`)
	bare     = regexp.MustCompile(`^([+-]?\d*\.\d+)([+-]\d{3})$`)
	// NumPy, PyTorch and JAX print the type around a value: np.float64(0.5), tensor(0.5, device='cuda:0').
	wrapped = regexp.MustCompile(`^[\w.]*(?i:float|double|tensor|array)\d*\(\s*([^\s,()]+)(?:[\s,)].*)?$`)
)

// number parses a JSON number, a number in a string, or null, which is what JavaScript
// writes for NaN. A number too large for a float64 is infinite.
func number(raw json.RawMessage) (float64, error) {
	text := string(raw)
	if text == "null" {
		return math.NaN(), nil
	}
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(raw, &text); err != nil {
			return 0, err
		}
	}
	return parseFloat(text)
}

// parseFloat parses a number as programs of many languages print it. A number too large for
// a float64 is infinite.
func parseFloat(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return v, nil
	}
	if sign := infinite.FindStringSubmatch(text); sign != nil {
		return strconv.ParseFloat(sign[1]+"inf", 64)
	}
	if notANumber.MatchString(text) || microsoft.MatchString(text) {
		return math.NaN(), nil
	}
	for _, form := range []*regexp.Regexp{exponent, bare} {
		if parts := form.FindStringSubmatch(text); parts != nil {
			return parseFloat(parts[1] + "e" + parts[2])
		}
	}
	if inner := wrapped.FindStringSubmatch(text); inner != nil {
		return parseFloat(inner[1]) // shorter than text
	}
	return 0, err
}

// looseFloat ignores punctuation that \S+ includes, as in "0.31,".
func looseFloat(text string) (float64, error) {
	v, err := parseFloat(text)
	if err == nil {
		return v, nil
	}
	return parseFloat(strings.TrimRight(strings.TrimLeft(text, `"'`), `"',;:.)]}`))
}
