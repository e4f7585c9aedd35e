package study

import (
	"fmt"
	"strings"
	"time"
)

// String is the duration as a study file writes it, without trailing zero
// units: "10m", "1h30m", "250ms".
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

// MarshalText writes the duration as String does, in JSON and in YAML.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads: numbers with units.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration: write numbers with units, such as 90s, 10m or 1h30m", text)
	}
	*d = Duration(parsed)
	return nil
}
