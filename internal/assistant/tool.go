package assistant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// effect is what a tool does to its world.
type effect struct{ reads, destroys, repeats bool }

// The effects of tools.
var (
	// reads changes nothing.
	reads = effect{reads: true, repeats: true}
	// adds changes something each time that it is called.
	adds = effect{}
	// settles changes something once, however often it is called.
	settles = effect{repeats: true}
	// ends takes something away.
	ends = effect{destroys: true, repeats: true}
)

// tool describes a tool. refine may add to the properties of its arguments what Go's types do
// not say.
func tool[In any](name, title, description string, e effect, refine func(map[string]*jsonschema.Schema)) *mcp.Tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // In is one of this package's types
	}
	if refine != nil {
		refine(schema.Properties)
	}
	return &mcp.Tool{
		Name: name, Title: title, Description: description, InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{Title: title, ReadOnlyHint: e.reads, DestructiveHint: new(e.destroys), IdempotentHint: e.repeats,
			OpenWorldHint: new(false)},
	}
}

// between bounds a number.
func between(s *jsonschema.Schema, low, high float64) { s.Minimum, s.Maximum = new(low), new(high) }

// longest bounds a text, in characters.
func longest(s *jsonschema.Schema, n int) { s.MaxLength = new(n) }

// oneOf lists the values of a text.
func oneOf(s *jsonschema.Schema, values ...string) {
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
}

// explained makes the SDK's error of wrong arguments readable.
func explained(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		called, ok := result.(*mcp.CallToolResult)
		if !ok || err != nil || called == nil || called.GetError() == nil {
			return result, err
		}
		call, ok := req.(*mcp.CallToolRequest)
		problem := called.GetError().Error()
		if !ok || !strings.HasPrefix(problem, badArguments) {
			return result, err
		}
		better := &mcp.CallToolResult{}
		better.SetError(fmt.Errorf("arguments of %s: %s", call.Params.Name, readable(strings.TrimPrefix(problem, badArguments))))
		return better, nil
	}
}

// readable shortens the SDK's error of arguments: "validating root: validating /properties/limit:
// maximum: …" becomes "limit: maximum: …".
func readable(problem string) string {
	problem = strings.ReplaceAll(strings.TrimSpace(problem), "validating root: ", "")
	return strings.ReplaceAll(strings.ReplaceAll(problem, "validating /properties/", ""), "/items", "")
}

// badArguments begins the SDK's error of arguments that do not fit the schema.
const badArguments = `validating "arguments":`

// explain returns an error in words for the caller: the API's, with what is wrong with each
// field.
func (s *Server) explain(err error) error {
	connected, ok := errors.AsType[*connect.Error](err)
	switch {
	case !ok:
		return err
	case connected.Code() == connect.CodeUnauthenticated:
		return fmt.Errorf("%s (the server wants a token: set FANTASIA_TOKEN for fantasia mcp or, over HTTP, send the header Authorization: "+
			"Bearer TOKEN)", connected.Message())
	case connected.Code() == connect.CodeDeadlineExceeded:
		return fmt.Errorf("the server did not answer within %v", s.o.Timeout)
	case connected.Code() == connect.CodeUnavailable && !connect.IsWireError(err):
		return fmt.Errorf("%w: no server answers there", err)
	}
	if lines := fetch.Violations(connected); len(lines) > 0 {
		return errors.New(strings.Join(lines, "\n"))
	}
	return errors.New(connected.Message())
}

// checkName refuses what is not the name or the id of a study.
func checkName(study string) error {
	parts := strings.Split(study, ".")
	if len(parts) > 2 || slices.ContainsFunc(parts, func(p string) bool {
		return p == "" || len(p) > 63 || strings.ContainsFunc(p, func(c rune) bool {
			return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		})
	}) {
		return fmt.Errorf("study is %q; want a name (letters, digits and dashes) or an id, as list_studies shows them", study)
	}
	return nil
}
