package assistant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The bounds of an error, in bytes. Errors repeat arguments, which can have megabytes.
const (
	maxErrorLine = 1000
	maxError     = 16 << 10
)

// hidden reports whether a character changes how others are read, and shows nothing itself: control
// characters, those that turn the direction of text, and tags, by which text can be hidden from people.
// Others' texts can have them.
func hidden(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r >= 0xE0000 && r <= 0xE007F
}

// visible returns a text without hidden characters.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, text)
}

// visibleJSON returns JSON whose texts have no hidden characters. Objects called parameters stay as they are:
// whoever evaluates a point needs its exact choices.
func visibleJSON(content []byte) []byte {
	if !bytes.ContainsFunc(content, hidden) && !bytes.Contains(content, []byte(`\`)) {
		return content
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err := d.Decode(&v); err != nil || !cleaned(v, true) {
		return content
	}
	out, err := json.Marshal(v)
	if err != nil { // it came from JSON
		return content
	}
	return out
}

// cleaned removes hidden characters from the texts of a decoded JSON, and reports whether it had some. What is
// called parameters stays, unless it is in attributes, which can have any names.
func cleaned(v any, keepParameters bool) (changed bool) {
	clean := func(child any) any {
		if text, ok := child.(string); ok {
			shown := visible(text)
			changed = changed || shown != text
			return shown
		}
		changed = cleaned(child, keepParameters) || changed
		return child
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(v)) {
			child, shown := v[key], visible(key)
			if _, isPoint := child.(map[string]any); isPoint && key == "parameters" && keepParameters {
				continue
			}
			if shown != key {
				delete(v, key)
				changed = true
			}
			if all, ok := child.(map[string]any); ok && key == "attributes" {
				changed = cleaned(all, false) || changed
			} else {
				child = clean(child)
			}
			v[shown] = child
		}
	}
	return changed
}

// cut shortens an error: what it says is at its ends, and what it repeats between them.
func cut(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = middleOut(line, maxErrorLine)
	}
	return middleOut(strings.Join(lines, "\n"), maxError)
}

// middleOut returns a text of at most so many bytes, without its middle if that is necessary.
func middleOut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + "…" + strings.ToValidUTF8(text[len(text)-most/2:], "")
}

// readable is the middleware through which all answers go: it makes errors short and plain, and takes hidden
// characters out of others' texts.
func readable(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
			short := &jsonrpc.Error{Code: wire.Code, Message: cut(visible(wire.Message))}
			if len(wire.Data) <= maxErrorLine {
				short.Data = visibleJSON(wire.Data)
			}
			return result, short
		}
		if err != nil && len(err.Error()) > maxErrorLine {
			return result, errors.New(cut(visible(err.Error())))
		}
		switch result := result.(type) {
		case *mcp.CallToolResult:
			if result != nil {
				return readableResult(req, result), err
			}
		case *mcp.ReadResourceResult:
			if result != nil {
				for _, c := range result.Contents {
					c.Text = visible(c.Text)
				}
			}
		}
		return result, err
	}
}

// readableResult makes the answer of a tool readable.
func readableResult(req mcp.Request, result *mcp.CallToolResult) *mcp.CallToolResult {
	if problem := result.GetError(); problem != nil {
		better := &mcp.CallToolResult{}
		better.SetError(errors.New(cut(visible(explained(req, problem.Error())))))
		return better
	}
	if content, ok := result.StructuredContent.(json.RawMessage); ok {
		result.StructuredContent = json.RawMessage(visibleJSON(content))
	}
	for _, c := range result.Content {
		text, ok := c.(*mcp.TextContent)
		switch {
		case ok && json.Valid([]byte(text.Text)):
			text.Text = string(visibleJSON([]byte(text.Text)))
		case ok:
			text.Text = visible(text.Text)
		}
	}
	return result
}
