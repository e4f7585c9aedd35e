package fantasia

import (
	"context"
	"errors"
	"fmt"
)

// Server is a server of Fantasia for Options.Server. Package remote has the one for programs;
// others are for tests. Its methods are called concurrently.
type Server interface {
	// Call calls a method of the API's StudyService, such as "GetStudy", with a request as
	// JSON, and returns the answer as JSON. It repeats the call while the server does not
	// answer, has no leader, or is busy, until ctx ends: the error wraps ErrUnavailable then.
	// Calling the methods that this package uses twice does no more than calling them once.
	// What the server refuses is a *ServerError.
	Call(ctx context.Context, method string, request []byte) ([]byte, error)
	// CloseIdleConnections closes the connections that no call uses.
	CloseIdleConnections()
}

// ServerError is what a server says when it refuses a request.
type ServerError struct {
	// Code is a code of the Connect protocol, such as "permission_denied".
	Code string
	// Message says why, for people.
	Message string
}

// Error returns the message with the code.
func (e *ServerError) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

// codeOf returns the code with which a server has refused a request; empty if the error is not a refusal.
func codeOf(err error) string {
	if e, ok := errors.AsType[*ServerError](err); ok {
		return e.Code
	}
	return ""
}
