package report

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Object returns the single JSON object in body. Non-finite numbers of Python are put
// into quotes, in which Number reads them. The object is not checked further.
func Object(body []byte) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if !bytes.HasPrefix(body, []byte("{")) {
		return nil, errors.New("want a JSON object")
	}
	clean, n := object(body)
	switch {
	case n == 0:
		return nil, errors.New("JSON object without its closing brace")
	case n < len(body):
		return nil, errors.New("more than one JSON object")
	}
	return clean, nil
}

// Number parses a JSON number, a number in a string (including NaN and Inf), or null,
// which is what JavaScript writes for NaN. A number too large for a float64 is
// infinite.
func Number(raw json.RawMessage) (float64, error) { return number(raw) }
