package report

import "bytes"

// nonFinite are the non-finite numbers that Python's json module writes and JSON lacks.
var nonFinite = [][]byte{[]byte("NaN"), []byte("Infinity"), []byte("-Infinity")}

// object finds the JSON object at the start of b. It returns the object, with
// non-finite numbers of Python put into quotes, and its length in b. The length is 0 if
// the object does not end in b. The object is not checked further.
func object(b []byte) (clean []byte, n int) {
	depth, inString := 0, false
	copied := 0 // b[:copied] is in clean
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return append(clean, b[copied:i+1]...), i + 1
			}
		case c == 'N' || c == 'I' || c == '-':
			token := nonFiniteAt(b[i:])
			if token == nil {
				continue
			}
			clean = append(clean, b[copied:i]...)
			clean = append(clean, '"')
			clean = append(clean, token...)
			clean = append(clean, '"')
			i += len(token) - 1
			copied = i + 1
		}
	}
	return nil, 0
}

func nonFiniteAt(b []byte) []byte {
	for _, token := range nonFinite {
		if bytes.HasPrefix(b, token) {
			return token
		}
	}
	return nil
}
