package study

import (
	"fmt"
	"strings"
	"time"
)

// String formats the duration as in a study file, without trailing zero units: "10m",
// "1h30m", "250ms".
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText formats the duration as String does, for JSON and YAML.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses what time.ParseDuration does: numbers with units.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration: write numbers with units, such as 90s, 10m or 1h30m", text)
	}
	*d = Duration(parsed)
	return nil
}
