package assistant

import (
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
		// A schema of each answer would be three quarters of all that a client reads before its first call.
		OutputSchema: &jsonschema.Schema{Type: "object"},
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

// explained returns an error of a tool in words; the SDK's error of wrong arguments is hard to read.
func explained(req mcp.Request, problem string) string {
	call, ok := req.(*mcp.CallToolRequest)
	wrong, found := strings.CutPrefix(problem, badArguments)
	if !ok || !found {
		return problem
	}
	wrong = strings.ReplaceAll(strings.TrimSpace(wrong), "validating root: ", "")
	wrong = strings.ReplaceAll(strings.ReplaceAll(wrong, "validating /properties/", ""), "/items", "")
	return "arguments of " + call.Params.Name + ": " + wrong
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
