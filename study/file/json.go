package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// isJSON reports whether data is a JSON object. Not every such text is YAML too: YAML knows no
// surrogate pairs, such as "\ud83d\ude00", and bounds the length of keys.
func isJSON(data []byte) bool {
	text := bytes.TrimLeft(data, " \t\r\n")
	return len(text) > 0 && text[0] == '{' && utf8.Valid(data) && json.Valid(data)
}

// brokenJSON returns what is wrong with a text that begins as JSON does, and where.
func brokenJSON(data []byte) (at check.Place, message string, ok bool) {
	text := bytes.TrimLeft(data, " \t\r\n")
	if !bytes.HasPrefix(text, []byte("{")) || !bytes.HasPrefix(bytes.TrimLeft(text[1:], " \t\r\n"), []byte(`"`)) {
		return at, "", false
	}
	var any json.RawMessage
	wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, &any))
	if !ok {
		return at, "", false
	}
	r := &jsonReader{data: data, at: check.At(1, 1)}
	r.skip(max(int(wrong.Offset)-1, 0))
	return r.at, wrong.Error(), true
}

// json returns the root of a valid JSON text, as the YAML parser would.
func (d *decoder) json(data []byte) *yaml.Node {
	r := &jsonReader{decoder: d, data: data, tokens: json.NewDecoder(bytes.NewReader(data)), at: check.At(1, 1)}
	r.tokens.UseNumber()
	return r.node()
}

// jsonReader makes nodes of a valid JSON text.
type jsonReader struct {
	*decoder
	data   []byte
	tokens *json.Decoder
	end    int         // of the last token, in bytes
	at     check.Place // of end, in characters
}

// node reads the next value, or the next key.
func (r *jsonReader) node() *yaml.Node {
	begin := r.end
	for strings.IndexByte(" \t\r\n,:", r.data[begin]) >= 0 {
		begin++
	}
	r.skip(begin)
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.at.Line, Column: r.at.Column}
	switch token := r.token().(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if token == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for r.tokens.More() {
			n.Content = append(n.Content, r.node())
		}
		r.token() // the bracket at the end
	case string:
		n.Tag, n.Value, n.Style = "!!str", token, yaml.DoubleQuotedStyle
		if halved(string(r.data[begin:r.end])) {
			r.AddAt(check.At(n.Line, n.Column), "",
				`a text has half of a surrogate pair, such as \ud83d without \ude00: write both, or the character itself`)
		}
	case json.Number:
		n.Tag, n.Value = "!!int", token.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", "false"
		if token {
			n.Value = "true"
		}
	case nil:
		n.Tag, n.Value = "!!null", "null"
	}
	return n
}

// halved reports whether a text of JSON has half of a surrogate pair.
func halved(raw string) bool {
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			return false
		}
		switch unit := escape(raw[i:]); {
		case utf16.IsSurrogate(unit):
			if utf16.DecodeRune(unit, escape(raw[i+6:])) == utf8.RuneError {
				return true
			}
			raw = raw[i+12:]
		case unit > 0:
			raw = raw[i+6:]
		default:
			raw = raw[i+2:]
		}
	}
}

// escape returns the unit of UTF-16 that a text begins with as \uXXXX; 0 if it does not.
func escape(text string) rune {
	if len(text) < 6 || text[:2] != `\u` {
		return 0
	}
	unit, _ := strconv.ParseUint(text[2:6], 16, 16) // the text is valid
	return rune(unit)
}

// token reads the next token.
func (r *jsonReader) token() json.Token {
	token, _ := r.tokens.Token() // the text is valid
	r.skip(int(r.tokens.InputOffset()))
	return token
}

// skip moves on to a place in the text.
func (r *jsonReader) skip(to int) {
	for _, c := range string(r.data[r.end:to]) {
		r.at.Column++
		if c == '\n' {
			r.at = check.At(r.at.Line+1, 1)
		}
	}
	r.end = to
}
