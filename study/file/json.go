package file

import (
	"bytes"
	"encoding/json"
	"strings"
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
		n.Tag, n.Value = "!!str", token
		if strings.ContainsRune(token, utf8.RuneError) && bytes.Contains(bytes.ToLower(r.data[begin:r.end]), []byte(`\ud`)) {
			r.AddAt(check.At(n.Line, n.Column), "", `a text has half of a surrogate pair, such as \ud83d without \ude00: write both, or the character itself`)
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
