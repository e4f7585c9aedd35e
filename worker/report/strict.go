package report

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Object returns the one JSON object that body consists of. The non-finite
// numbers that Python writes are put into quotes, where Number reads them. What
// is in the object is not checked.
func Object(body []byte) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if !bytes.HasPrefix(body, []byte("{")) {
		return nil, errors.New("no JSON object")
	}
	clean, n := object(body)
	switch {
	case n == 0:
		return nil, errors.New("a JSON object that ends before its closing brace")
	case n < len(body):
		return nil, errors.New("more than one JSON object")
	}
	return clean, nil
}

// Number reads a JSON number, a number in a string (NaN and Inf are some), or
// null, which is what JavaScript writes for NaN. What is too large for a float64
// is infinite.
func Number(raw json.RawMessage) (float64, error) { return number(raw) }
