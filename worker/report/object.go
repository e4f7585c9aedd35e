package report

import (
	"bytes"
	"encoding/json"
)

// maxToken is the largest length of a number's text, in bytes.
const maxToken = 64

// object finds the JSON object at the start of b. It returns the object, with numbers that
// languages print and JSON lacks, such as NaN, put into quotes, and its length in b. The length
// is 0 if the object does not end in b. The object is not checked further.
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
		case !bytes.ContainsRune([]byte(space+",:"), rune(c)):
			token := tokenAt(b[i:])
			if foreign(token) {
				clean = append(clean, b[copied:i]...)
				clean = append(clean, '"')
				clean = append(clean, token...)
				clean = append(clean, '"')
				copied = i + len(token)
			}
			i += len(token) - 1
		}
	}
	return nil, 0
}

const space = " \t\r\n"

// tokenAt returns the text at the start of b, which is outside of any string, up to the next
// character of JSON's grammar.
func tokenAt(b []byte) []byte {
	if i := bytes.IndexAny(b, space+`,:"{}[]`); i > 0 {
		return b[:i]
	}
	return b
}

// foreign reports whether a token is a number, but not as JSON writes it.
func foreign(token []byte) bool {
	if len(token) > maxToken || json.Valid(token) {
		return false
	}
	_, err := parseFloat(string(token))
	return err == nil
}
